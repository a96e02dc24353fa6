#!/usr/bin/env python3
"""An agent for many users that mixes them up: what they say goes into one list for all.

With --fixed every session has a list and a lock of its own. --lose, --double and --reorder spoil what is remembered,
with the probability given, in either mode. --leak adds another session's code word to a reply: rarely, only under load,
in a header, or encoded. The server speaks a small protocol of its own, OpenAI's chat completions and A2A.
"""

import argparse
import base64
import json
import random
import re
import threading
import time
import uuid
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CODE_WORD = re.compile(r'code word number \d+ is (\w+)')


class Model:
    """Stands in for a language model: repeats every code word in the messages it is given, after a little while."""

    def __init__(self, think):
        self.think = think

    def complete(self, messages):
        time.sleep(random.uniform(0, self.think))
        said = (message['content'] for message in messages if message['role'] == 'user')
        return ' '.join(word for text in said for word in CODE_WORD.findall(text)) or 'I know no code words.'


class MixedUp:
    """The mistake: one list at the level of the module, or of whatever lives as long as the process."""

    def __init__(self, model, spoil):
        self.model, self.spoil, self.messages = model, spoil, []

    def handle(self, session, text):
        self.spoil.append(self.messages, {'role': 'user', 'content': text})
        reply = self.model.complete(list(self.messages))
        self.messages.append({'role': 'assistant', 'content': reply})
        return reply

    def history(self, session):
        return list(self.messages)


class Fixed:
    """The same with a list for each session, and a lock that lets one turn of a session follow another."""

    def __init__(self, model, spoil):
        self.model, self.spoil = model, spoil
        self.sessions, self.locks, self.guard = defaultdict(list), defaultdict(threading.Lock), threading.Lock()

    def handle(self, session, text):
        with self.guard:
            lock, messages = self.locks[session], self.sessions[session]
        with lock:
            self.spoil.append(messages, {'role': 'user', 'content': text})
            reply = self.model.complete(messages)
            messages.append({'role': 'assistant', 'content': reply})
            return reply

    def history(self, session):
        with self.guard:
            return list(self.sessions.get(session, []))


class Spoil:
    """Remembers wrongly, now and then."""

    def __init__(self, options):
        self.lose, self.double, self.reorder = options.lose, options.double, options.reorder
        self.random, self.guard = random.Random(options.seed), threading.Lock()

    def happens(self, probability):
        with self.guard:
            return self.random.random() < probability

    def append(self, messages, message):
        if self.happens(self.lose):
            return
        own = [at for at, known in enumerate(messages) if known['role'] == 'user']
        if own and self.happens(self.reorder):
            messages.insert(own[-1], message)
        else:
            messages.append(message)
        if self.happens(self.double):
            messages.append(message)


class Leak:
    """Adds the newest code word of another session to a reply."""

    ENCODINGS = {
        'reply': lambda word: word,
        'base64': lambda word: base64.b64encode(word.encode()).decode(),
        'base64url': lambda word: base64.urlsafe_b64encode(word.encode()).decode().rstrip('='),
        'percent': lambda word: ''.join(f'%{ord(letter):02x}' for letter in word),
        'escape': lambda word: ''.join(f'\\u{ord(letter):04x}' for letter in word),
        'entity': lambda word: ''.join(f'&#{ord(letter)};' for letter in word),
        'hex': lambda word: word.encode().hex(),
        'header': lambda word: '',
    }

    def __init__(self, options):
        self.probability, self.users, self.place = options.leak, options.leak_users, options.leak_in
        self.random, self.guard = random.Random(options.seed), threading.Lock()
        self.newest, self.in_flight = {}, 0

    def __enter__(self):
        with self.guard:
            self.in_flight += 1

    def __exit__(self, *_):
        with self.guard:
            self.in_flight -= 1

    def apply(self, session, text, reply):
        """The reply and its headers, after a turn of a session."""
        with self.guard:
            others = [word for other, word in self.newest.items() if other != session]
            told = CODE_WORD.findall(text)
            if told:
                # Removed first, so that the newest is the last.
                self.newest.pop(session, None)
                self.newest[session] = told[-1]
            if not others or self.in_flight < self.users or self.random.random() >= self.probability:
                return reply, {}
            word = others[-1]
            # Something before the word shifts its position in base64.
            before = self.random.choice(['', '~', '~~'])
        if self.place == 'header':
            return reply, {'X-Trace': f'session-{word}'}
        return f'{reply} {self.ENCODINGS[self.place](before + word)}', {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    agent = leak = None

    def do_GET(self):
        found = re.fullmatch(r'/sessions/([^/]+)/messages', self.path)
        if found:
            return self.answer(200, {'messages': self.agent.history(found.group(1))})
        if self.path == '/.well-known/agent-card.json':
            return self.answer(200, self.card())
        return self.answer(404, {'error': 'there is nothing here'})

    def do_POST(self):
        self.extra = {}
        with self.leak:
            self.post()

    def handle_turn(self, session, text):
        reply, self.extra = self.leak.apply(session, text, self.agent.handle(session, text))
        return reply

    def post(self):
        try:
            asked = json.loads(self.rfile.read(int(self.headers.get('Content-Length', 0))))
            if self.path == '/chat':
                return self.answer(200, {'reply': self.handle_turn(asked['session'], asked['message'])})
            if self.path == '/v1/chat/completions':
                return self.answer(200, self.completion(asked))
            if self.path == '/a2a':
                return self.answer(200, self.a2a(asked))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            return self.answer(400, {'error': f'{type(error).__name__}: {error}'})
        return self.answer(404, {'error': 'there is nothing here'})

    def completion(self, asked):
        # It keeps the history itself, so only the newest message matters.
        reply = self.handle_turn(asked['user'], asked['messages'][-1]['content'])
        message = {'role': 'assistant', 'content': reply}
        choice = {'index': 0, 'message': message, 'finish_reason': 'stop'}
        return {'id': str(uuid.uuid4()), 'object': 'chat.completion', 'created': int(time.time()),
                'model': asked.get('model', 'sample'), 'choices': [choice]}

    def a2a(self, asked):
        if asked['method'] != 'message/send':
            return {'jsonrpc': '2.0', 'id': asked['id'], 'error': {'code': -32601, 'message': 'no such method'}}
        message = asked['params']['message']
        context = message.get('contextId') or str(uuid.uuid4())
        reply = self.handle_turn(context, ' '.join(part.get('text', '') for part in message['parts']))
        result = {'kind': 'message', 'role': 'agent', 'messageId': str(uuid.uuid4()), 'contextId': context,
                  'parts': [{'kind': 'text', 'text': reply}]}
        return {'jsonrpc': '2.0', 'id': asked['id'], 'result': result}

    def card(self):
        url = f'http://{self.headers["Host"]}/a2a'
        return {'name': 'sample', 'description': 'Repeats code words.', 'version': '1', 'protocolVersion': '0.3.0',
                'url': url, 'preferredTransport': 'JSONRPC', 'capabilities': {}, 'skills': [],
                'defaultInputModes': ['text/plain'], 'defaultOutputModes': ['text/plain']}

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        for name, value in getattr(self, 'extra', {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # All users connect at once.
    request_queue_size = 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--port', type=int, default=8000, help='0: any that is free')
    parser.add_argument('--fixed', action='store_true', help='keep sessions apart')
    parser.add_argument('--think', type=float, default=0.005, help='seconds that a reply takes at most')
    parser.add_argument('--seed', type=int, help='for --lose, --double, --reorder and --leak')
    for name, what in [('lose', 'forget'), ('double', 'remember twice'), ('reorder', 'remember before the last one')]:
        parser.add_argument(f'--{name}', type=float, default=0, metavar='P', help=f'{what} a message, with this probability')
    parser.add_argument('--leak', type=float, default=0, metavar='P',
                        help="add another session's code word to a reply, with this probability")
    parser.add_argument('--leak-users', type=int, default=1, metavar='N', help='leak only while N requests are in flight')
    parser.add_argument('--leak-in', choices=sorted(Leak.ENCODINGS), default='reply', help='where, or encoded how')
    options = parser.parse_args()
    model, spoil = Model(options.think), Spoil(options)
    Handler.agent = Fixed(model, spoil) if options.fixed else MixedUp(model, spoil)
    Handler.leak = Leak(options)
    server = Server(('127.0.0.1', options.port), Handler)
    print(f'http://127.0.0.1:{server.server_port}', flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == '__main__':
    main()
