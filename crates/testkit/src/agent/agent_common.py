"""What both agents have in common: how they are started, whom they let in, and what they do with a message.

The one argument is a JSON object: see `python.rs`. The first line of output is the address.
"""

import asyncio
import base64
import hashlib
import json
import os
import socket
import sys
import threading
import urllib.parse
import urllib.request

from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import TaskUpdater

PLACEHOLDER = 'http://agent.invalid'

OPEN_PATHS = ('/.well-known/agent-card.json', '/.well-known/agent.json')


class Setting:
    """The options, with a socket that listens already."""

    def __init__(self):
        given = sys.argv[1]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(('127.0.0.1', 0))
        self.socket.listen(1024)
        self.base = f'http://127.0.0.1:{self.socket.getsockname()[1]}'
        self.options = json.loads(given.replace(PLACEHOLDER, self.base))

    def serve(self, app):
        import uvicorn

        # Who started it is gone when its end of the input is.
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        print(self.base, flush=True)
        config = uvicorn.Config(Guard(app, self.options), log_level='warning', timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[self.socket])


class Guard:
    """Lets in who has a secret, if one is asked for; the card is for everybody."""

    def __init__(self, app, options):
        self.app, self.auth, self.accounts = app, options['auth'], options['accounts']

    async def __call__(self, scope, receive, send):
        if scope['type'] != 'http':
            return await self.app(scope, receive, send)
        offered = offered_secrets(scope, self.auth)
        account = next((self.accounts[secret] for secret in offered if secret in self.accounts), None)
        if account is None and self.auth.get('issuer'):
            account = await asyncio.to_thread(ask_issuer, self.auth['issuer'], offered)
        if self.auth['kind'] != 'none' and account is None and scope['path'] not in OPEN_PATHS:
            return await refuse(send, self.auth)
        names = {name.decode().lower() for name, _ in scope['headers']}
        seen = {'account': account, 'sent': sorted(names & {'authorization', 'cookie', 'x-api-key'})}
        # The executor sees only headers, so this goes in as one.
        headers = [pair for pair in scope['headers'] if pair[0].lower() != b'x-seen']
        headers.append((b'x-seen', json.dumps(seen).encode()))
        await self.app({**scope, 'headers': headers}, receive, send)


def offered_secrets(scope, auth):
    headers = {name.decode().lower(): value.decode('latin-1') for name, value in scope['headers']}
    name = auth.get('name', 'X-API-Key')
    kind = auth['kind']
    if kind == 'api-key-header':
        return [headers[name.lower()]] if name.lower() in headers else []
    if kind == 'api-key-query':
        return urllib.parse.parse_qs(scope['query_string'].decode()).get(name, [])
    if kind == 'api-key-cookie':
        pairs = [pair.strip().split('=', 1) for pair in headers.get('cookie', '').split(';')]
        return [pair[1] for pair in pairs if len(pair) == 2 and pair[0] == name]
    scheme, _, secret = headers.get('authorization', '').partition(' ')
    if kind == 'basic':
        try:
            return [base64.b64decode(secret).decode()] if scheme.lower() == 'basic' else []
        except ValueError:
            return []
    return [secret] if scheme.lower() == 'bearer' else []


def ask_issuer(issuer, secrets):
    for secret in secrets:
        request = urllib.request.Request(f'{issuer}/whoami', headers={'Authorization': f'Bearer {secret}'})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.load(answer)['account']
        except OSError:
            pass
    return None


async def refuse(send, auth):
    challenge = {'basic': 'Basic realm="agent"', 'bearer': 'Bearer realm="agent"', 'oauth2': 'Bearer realm="agent"'}
    headers = [(b'content-type', b'application/json'), (b'content-length', b'24')]
    headers.append((b'www-authenticate', challenge.get(auth['kind'], 'ApiKey realm="agent"').encode()))
    await send({'type': 'http.response.start', 'status': 401, 'headers': headers})
    await send({'type': 'http.response.body', 'body': b'{"error":"unauthorized"}'})


class Memory:
    """What the agent knows of its contexts."""

    def __init__(self):
        self.counts, self.tasks, self.forgotten = {}, {}, set()

    def forgot(self, context_id, task_id):
        return context_id in self.forgotten or task_id in self.forgotten

    def forget(self, context_id):
        """Returns the tasks to remove from the store."""
        tasks = self.tasks.pop(context_id, [])
        self.counts.pop(context_id, None)
        self.forgotten.update([context_id, *tasks])
        return tasks


async def play(kit, memory):
    """Does what the text of the message says, with what one version of the SDK offers.

    The kit has `text`, `context_id`, `task_id`, `continues`, `headers`, `tenant`, `extensions`, and the methods
    `reply`, `begin`, `status`, `artifact` and `remove`.
    """
    memory.counts[kit.context_id] = memory.counts.get(kit.context_id, 0) + 1
    word, _, rest = kit.text.strip().partition(' ')
    if kit.continues:
        await kit.status('working')
        if word == 'ask':
            return await kit.status('input-required', 'what is your name?')
        await kit.artifact([('text', f'hello {kit.text.strip()}')], name='greeting')
        return await kit.status('completed', f'hello {kit.text.strip()}')
    if word == 'echo':
        return await kit.reply(rest)
    if word == 'whoami':
        return await kit.reply(kit.headers.get('x-seen', '{}'))
    if word == 'context':
        return await kit.reply(f'{kit.context_id} {memory.counts[kit.context_id]}')
    if word == 'tenant':
        return await kit.reply(kit.tenant)
    if word == 'extensions':
        return await kit.reply(' '.join(sorted(kit.extensions)))
    if word == 'version':
        return await kit.reply(kit.headers.get('a2a-version', ''))
    if word == 'got':
        return await kit.reply(kit.describe())
    if word == 'note':
        return await kit.reply(rest, 'note.md')
    if word == 'forget':
        context_id = kit.context_id
        for task_id in memory.forget(context_id):
            await kit.remove(task_id)
        return await kit.reply('forgotten')
    memory.tasks.setdefault(kit.context_id, []).append(kit.task_id)
    await kit.begin()
    await play_task(kit, word, rest)


async def play_task(kit, word, rest):
    if word == 'ask':
        return await kit.status('input-required', 'what is your name?')
    if word == 'auth':
        return await kit.status('auth-required', 'log in at http://127.0.0.1/login')
    if word == 'reject':
        return await kit.status('rejected', 'not that')
    await kit.status('working')
    if word == 'fail':
        return await kit.status('failed', 'it broke')
    if word == 'slow':
        millis, _, rest = rest.partition(' ')
        steps = max(1, min(10, int(millis) // 50))
        for step in range(steps):
            await asyncio.sleep(int(millis) / steps / 1000)
            await kit.status('working', f'step {step + 1} of {steps}')
        await kit.artifact([('text', rest)], name='result')
    elif word == 'stream':
        count = int(rest or 3)
        for chunk in range(count):
            part = [('text', f'chunk {chunk + 1}\n')]
            await kit.artifact(part, name='chunks', id='chunks', append=chunk > 0, last=chunk + 1 == count)
    elif word == 'header':
        # A header of the request in pieces, as a model that repeats a credential would.
        value = kit.headers.get(rest, '')
        for at in range(0, len(value), 3):
            part = [('text', value[at:at + 3])]
            await kit.artifact(part, name='header', id='header', append=at > 0, last=at + 3 >= len(value))
    elif word == 'file':
        body = b'evil \x00\xff bytes\n'
        await kit.artifact([('file', body, '../../evil', 'application/octet-stream')], name='../../evil')
    elif word == 'data':
        await kit.artifact([('data', {'answer': 42, 'list': [1, 'two', None]})], name='data')
    else:
        await kit.artifact([('text', rest if word == 'task' else kit.text)], name='result')
    await kit.status('completed')


def digest(body):
    return hashlib.sha256(body).hexdigest()


class BaseKit:
    """What a script does with the SDK, as far as both versions do it alike."""

    def __init__(self, context, queue, store, tenant):
        self.context, self.queue, self.store = context, queue, store
        self.text, self.continues = context.get_user_input(), context.current_task is not None
        self.context_id, self.task_id, self.tenant = context.context_id, context.task_id, tenant
        self.headers = context.call_context.state.get('headers', {})
        self.extensions = context.requested_extensions
        self.updater = TaskUpdater(queue, self.task_id, self.context_id)

    async def artifact(self, parts, name, id=None, append=None, last=None):
        parts = [self.part_of(*part) for part in parts]
        await self.updater.add_artifact(parts, artifact_id=id, name=name, append=append, last_chunk=last)

    async def remove(self, task_id):
        await self.store.delete(task_id, self.context.call_context)


class Executor(AgentExecutor):
    """Plays the script in a message with the kit of an SDK version."""

    def __init__(self, kit, memory, store):
        self.kit, self.memory, self.store = kit, memory, store

    async def execute(self, context, event_queue):
        await play(self.kit(context, event_queue, self.store), self.memory)

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class ForgetfulHandler(DefaultRequestHandler):
    """Refuses messages of contexts and tasks that were forgotten: `check` raises the error of the SDK version."""

    memory = Memory()

    async def on_message_send(self, params, context=None):
        self.check(params.message)
        return await super().on_message_send(params, context)

    async def on_message_send_stream(self, params, context=None):
        self.check(params.message)
        async for event in super().on_message_send_stream(params, context):
            yield event
