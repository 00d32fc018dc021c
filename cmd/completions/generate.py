#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the completion of a shell to standard output. Usage: generate.py BTRKIT bash|zsh|fish"""
import sys

import table

HEAD = "# Generated from btrkit --help by cmd/completions/generate.py.\n"

BASH = r"""
# What follows option $2 of command $1, or is its argument 1 or 2.
_btrkit_kind()
{
	case $1,$2 in
@KINDS@	esac
}

_btrkit_options()
{
	case $1 in
@OPTIONS@	esac
}

_btrkit_offer()
{
	COMPREPLY=()
	case $1 in
	words) shift; mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur") ;;
	file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	directory) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	esac
}

_btrkit()
{
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
	local i kind arguments=0 optional=
	if [ "$COMP_CWORD" = 1 ]; then
		_btrkit_offer words @COMMANDS@ --help --version
		return
	fi
	# bash takes --option=value for three words.
	if [ "$cur" = = ]; then
		cur='' optional=1
	elif [ "$before" = = ]; then
		before=${COMP_WORDS[COMP_CWORD-2]} optional=1
	fi
	kind=$(_btrkit_kind "$command" "$before")
	case $kind in
	"optional "*) [ -n "$optional" ] && kind=${kind#optional } || kind= ;;
	esac
	if [ -n "$kind" ] && [ "${before#-}" != "$before" ]; then
		# shellcheck disable=SC2086
		_btrkit_offer $kind
		return
	fi
	if [ "${cur#-}" != "$cur" ]; then
		# shellcheck disable=SC2046
		_btrkit_offer words $(_btrkit_options "$command") --help
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		=) i=$((i + 1)) ;;
		-*)
			kind=$(_btrkit_kind "$command" "${COMP_WORDS[i]}")
			case $kind in
			"" | "optional "*) ;;
			*) [ "${COMP_WORDS[i + 1]}" = = ] || i=$((i + 1)) ;;
			esac ;;
		*) arguments=$((arguments + 1)) ;;
		esac
	done
	# shellcheck disable=SC2046
	_btrkit_offer $(_btrkit_kind "$command" $((arguments > 0 ? 2 : 1)))
}

complete -F _btrkit btrkit
"""


def names(option):
    return [f"-{option.short}"] * bool(option.short) + [f"--{option.long}"]


def bash(commands):
    kinds, options = [], []
    for command in commands:
        for option in command.options:
            if option.kind:
                said = " ".join(["optional"] * option.optional + [option.kind.what, *option.kind.words])
                kinds.append(f"\t{' | '.join(f'{command.name},{n}' for n in names(option))}) echo '{said}' ;;\n")
        for number, kind in ((1, command.first), (2, command.others)):
            if kind:
                kinds.append(f"\t{command.name},{number}) echo '{' '.join([kind.what, *kind.words])}' ;;\n")
        every = " ".join(n for option in command.options for n in names(option) if option.long != "help")
        options.append(f"\t{command.name}) echo '{every}' ;;\n")
    return HEAD + BASH.replace("@KINDS@", "".join(kinds)).replace("@OPTIONS@", "".join(options)).replace(
        "@COMMANDS@", " ".join(c.name for c in commands)).lstrip("\n")


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_action(kind):
    if kind.what == "words":
        return f"({' '.join(kind.words)})"
    return {"file": "_files", "directory": "_files -/", "other": " "}[kind.what]


def zsh_help(text):
    for special in "\\[]:":
        text = text.replace(special, "\\" + special)
    return text


def zsh_option(option):
    message = ""
    if option.kind:
        message = f":{zsh_help(option.kind.name)}:{zsh_action(option.kind)}"
    if option.optional:
        return [quoted(f"--{option.long}=-[{zsh_help(option.help)}]:{message}")]
    found = []
    for name in names(option):
        sign = "" if not option.kind else "=" if name.startswith("--") else "+"
        found.append(quoted(f"*{name}{sign}[{zsh_help(option.help)}]{message}"))
    return found


def zsh(commands):
    lines = ["#compdef btrkit", HEAD.rstrip("\n"), "_btrkit_commands()", "{", "\tlocal -a commands=("]
    lines += [f"\t\t{quoted(c.name + ':' + c.summary)}" for c in commands]
    lines += ["\t)", "\t_describe command commands", "}", "", "_btrkit_arguments()", "{", "\tcase $words[1] in"]
    for command in commands:
        specs = [spec for option in command.options for spec in zsh_option(option)]
        for where, kind in (("1", command.first), ("*", command.others)):
            if kind:
                specs.append(quoted(f"{where}:{zsh_help(kind.name)}:{zsh_action(kind)}"))
        lines.append(f"\t{command.name})\n\t\t_arguments -S \\\n\t\t\t" + " \\\n\t\t\t".join(specs) + " ;;")
    lines += ["\tesac", "}", "", "_btrkit()", "{", "\tlocal curcontext=$curcontext state line",
              "\t_arguments -C '--help[print help and exit]' '--version[print the version and exit]' \\",
              "\t\t'1:command:_btrkit_commands' '*::argument:_btrkit_arguments'", "}", "", '_btrkit "$@"']
    return "\n".join(lines) + "\n"


def fish(commands):
    lines = [HEAD.rstrip("\n"),
             "function __btrkit_command", "\tset -l words (commandline -opc)",
             '\ttest (count $words) -gt 1; and test "$words[2]" = "$argv[1]"', "end", "",
             "complete -c btrkit -n '__fish_is_first_token' -f"]
    for command in commands:
        lines.append(f"complete -c btrkit -n __fish_is_first_token -a {command.name} -d {fish_quoted(command.summary)}")
        at = f"complete -c btrkit -n '__btrkit_command {command.name}'"
        kinds = [kind for kind in (command.first, command.others) if kind]
        if not any(kind.what in ("file", "directory") for kind in kinds):
            lines.append(f"{at} -f")
        for kind in kinds:
            if kind.what == "words":
                lines.append(f"{at} -a {fish_quoted(' '.join(kind.words))}")
        lines += [fish_option(at, option) for option in command.options]
    return "\n".join(lines) + "\n"


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(at, option):
    line = at + (f" -s {option.short}" if option.short else "") + f" -l {option.long}"
    if option.kind:
        if option.kind.what == "words":
            line += f" -x -a {fish_quoted(' '.join(option.kind.words))}"
        elif option.kind.what == "directory":
            line += " -x -a '(__fish_complete_directories)'"
        elif option.kind.what == "file":
            line += " -r -F"
        elif not option.optional:
            line += " -x"
    return f"{line} -d {fish_quoted(option.help)}"


def main(binary, shell):
    sys.stdout.write({"bash": bash, "zsh": zsh, "fish": fish}[shell](table.read(binary)))


if __name__ == "__main__":
    main(*sys.argv[1:])
