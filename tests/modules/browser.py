# SPDX-License-Identifier: LGPL-2.1-or-later
"""Control a headless Chromium over the DevTools protocol, through a pipe."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = os.environ.get('CHROMIUM') or shutil.which('chromium') or shutil.which('chromium-browser')
DEADLINE = 300
ARGUMENTS = ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
             '--no-default-browser-check', '--disable-background-networking', '--disable-component-update',
             '--disable-sync', '--disable-extensions', '--hide-scrollbars', '--remote-debugging-pipe', '--lang=en')


class Browser:
    """A browser process; a context manager."""

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix='btrkit-chromium-')
        # Use high numbers: Chromium expects the pipes at descriptors 3 and 4.
        theirs_in, self.to = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in os.pipe())
        self.source, theirs_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in os.pipe())

        def places():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self.log = open(f'{self.home}/log', 'w+b')  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            [CHROMIUM, *ARGUMENTS, f'--user-data-dir={self.home}/profile', 'about:blank'], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, pass_fds=(3, 4), preexec_fn=places, start_new_session=True,
            env=dict(os.environ, HOME=self.home, LC_ALL='C.UTF-8'))
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.events = 0, b'', []
        return self

    def __exit__(self, *_):
        try:
            self.call('Browser.close')
            self.process.wait(30)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.source)
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self, deadline):
        while b'\0' not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.source], [], [], left)[0]:
                raise RuntimeError('Chromium does not answer')
            piece = os.read(self.source, 1 << 20)
            if not piece:
                self.log.seek(0)
                raise RuntimeError(f'Chromium ended: {self.log.read().decode(errors="replace")[-2000:]}')
            self.rest += piece
        message, self.rest = self.rest.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.number += 1
        request = {'id': self.number, 'method': method, 'params': params, **({'sessionId': session} if session else {})}
        data = json.dumps(request).encode() + b'\0'
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + DEADLINE
        while True:
            answer = self.message(deadline)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            if 'method' in answer:
                self.events.append(answer)


class Page:
    """A page opened from a file. Keeps its network requests and its error messages."""

    def __init__(self, browser, path, width=1280, height=900, dark=False):
        self.browser = browser
        self.url = 'file://' + os.path.abspath(path)
        self.target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=self.target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network', 'Security'):
            self.call(f'{domain}.enable')
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme',
                                                           'value': 'dark' if dark else 'light'}])
        self.resize(width, height)
        browser.events.clear()
        self.call('Page.navigate', url=self.url)
        self.wait('document.readyState === "complete"')

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def resize(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, expression):
        """Evaluate an expression whose value JSON can represent."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(f'{expression}: {answer["exceptionDetails"]}')
        return answer['result'].get('value')

    def wait(self, expression):
        deadline = time.monotonic() + DEADLINE
        while not self.run(expression):
            if time.monotonic() > deadline:
                raise RuntimeError(f'not in time: {expression}')
            time.sleep(0.05)

    def settle(self):
        """Wait two frames."""
        self.run('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))')

    def key(self, name, modifiers=0, **more):
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=name, modifiers=modifiers, **more)

    def click(self, selector, modifiers=0):
        box = self.run(f'(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView('
                       '{ block: "center", behavior: "instant" }); const r = e.getBoundingClientRect(); '
                       'return [r.x + r.width / 2, r.y + r.height / 2]; })()')
        for kind in ('mousePressed', 'mouseReleased'):
            self.call('Input.dispatchMouseEvent', type=kind, x=box[0], y=box[1], button='left', clickCount=1,
                      modifiers=modifiers)

    def screenshot(self, path):
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))

    def complaints(self):
        """Return all requests except the one for the page itself, errors and warnings of scripts and policies, and
        dialogs."""
        self.settle()
        found = []
        for event in self.browser.events:
            method, params = event['method'], event.get('params', {})
            if method == 'Network.requestWillBeSent' and params['request']['url'] not in (self.url, 'data:,'):
                found.append(('request', params['request']['url']))
            elif method in ('Runtime.exceptionThrown', 'Log.entryAdded', 'Runtime.consoleAPICalled',
                            'Page.javascriptDialogOpening', 'Page.windowOpen', 'Network.webSocketCreated'):
                found.append((method, params))
        return found

    def close(self):
        self.browser.call('Target.closeTarget', targetId=self.target)
