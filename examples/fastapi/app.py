#!/usr/bin/env python3
"""An agent for many users that keeps them apart: a session for each user, and a turn for each message.

What users say is kept by `sessile serve`. This process keeps nothing of it, so there can be any number of them.
"""

import argparse
import asyncio
import hashlib
import random
import re
import socket
from contextlib import asynccontextmanager

import httpx
import uvicorn
from fastapi import FastAPI, Header, HTTPException, Request
from pydantic import BaseModel

CODE_WORD = re.compile(r'code word number \d+ is (\w+)')


class Model:
    """Stands in for a language model: repeats every code word in the messages it is given, after a little while."""

    def __init__(self, think):
        self.think = think

    async def complete(self, messages):
        await asyncio.sleep(random.uniform(0, self.think))
        if messages[-1]['content'] == 'Fail.':
            raise RuntimeError('the model is out of order')
        said = (message['content'] for message in messages if message['role'] == 'user')
        return ' '.join(word for text in said for word in CODE_WORD.findall(text)) or 'I know no code words.'


class Sessions:
    """The session service."""

    def __init__(self, url, token):
        # A turn is waited for as long as others of the same session take.
        limits, timeout = httpx.Limits(max_connections=None), httpx.Timeout(60)
        headers = {'Authorization': f'Bearer {token}'}
        self.http = httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=timeout, trust_env=False)

    async def call(self, method, path, **request):
        response = await self.http.request(method, path, **request)
        response.raise_for_status()
        return response.json() if response.content else None

    async def of(self, user):
        """The path of the user's session. The service lets only one live session have a name."""
        label = hashlib.sha256(user.encode()).hexdigest()[:32]
        new = {'name': f'user-{label}', 'labels': {'user': label}}
        for _ in range(3):
            found = await self.call('GET', '/v1/sessions', params={'label': f'user={label}', 'limit': 1})
            if found['sessions']:
                return f'/v1/sessions/{found["sessions"][0]["id"]}'
            try:
                return f'/v1/sessions/{(await self.call("POST", "/v1/sessions", json=new))["id"]}'
            except httpx.HTTPStatusError as error:
                # Another request of the same user was faster.
                if error.response.status_code != 409:
                    raise
        raise HTTPException(503, 'the session comes and goes')

    @asynccontextmanager
    async def turn(self, session):
        """A turn: nobody else has the session meanwhile. What is not committed in it has not happened."""
        begun = await self.call('POST', f'{session}/turns', json={'history': 1000, 'ttl_ms': 60_000})
        turn = Turn(self, f'{session}/turns/{begun["token"]}', [message['body'] for message in begun['history']])
        try:
            yield turn
        finally:
            if not turn.is_over:
                await asyncio.shield(self.call('DELETE', turn.path))


class Turn:
    def __init__(self, sessions, path, messages):
        self.sessions, self.path, self.messages, self.is_over = sessions, path, messages, False

    async def commit(self, messages):
        """Appends them all, or none: also if the time of the turn was over and another has begun."""
        await self.sessions.call('POST', f'{self.path}/commit', json={'messages': messages})
        self.is_over = True


async def handle_message(sessions, model, user_id, message):
    """What many a mix-up begins with, done right: the messages are this user's, and nobody else can change them meanwhile."""
    said = {'role': 'user', 'content': message}
    async with sessions.turn(await sessions.of(user_id)) as turn:
        reply = {'role': 'assistant', 'content': await model.complete([*turn.messages, said])}
        await turn.commit([said, reply])
    return reply['content']


class Message(BaseModel):
    message: str


def make_app(service, token, model):
    @asynccontextmanager
    async def lifespan(app):
        app.state.sessions = Sessions(service, token)
        yield
        await app.state.sessions.http.aclose()

    app = FastAPI(lifespan=lifespan)

    # Who asks is for your own login to say; a header is enough for a sample.
    @app.post('/chat')
    async def chat(body: Message, request: Request, x_user: str = Header()):
        try:
            return {'reply': await handle_message(request.app.state.sessions, model, x_user, body.message)}
        except RuntimeError as error:
            raise HTTPException(502, str(error)) from error

    @app.get('/messages')
    async def messages(request: Request, x_user: str = Header()):
        sessions = request.app.state.sessions
        found = await sessions.call('GET', f'{await sessions.of(x_user)}/messages', params={'limit': 1000})
        return {'messages': [message['body'] for message in found['messages']]}

    return app


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--service', default='http://127.0.0.1:8737', help='where `sessile serve` listens')
    parser.add_argument('--token-file', required=True, help='with a token of `sessile user token create`')
    parser.add_argument('--port', type=int, default=8000, help='0: any that is free')
    parser.add_argument('--think', type=float, default=0.005, help='seconds that a reply takes at most')
    options = parser.parse_args()
    with open(options.token_file, encoding='utf-8') as file:
        token = file.readline().strip()
    listener = socket.create_server(('127.0.0.1', options.port), backlog=1024)
    print(f'http://127.0.0.1:{listener.getsockname()[1]}', flush=True)
    app = make_app(options.service, token, Model(options.think))
    uvicorn.Server(uvicorn.Config(app, log_level='warning')).run(sockets=[listener])


if __name__ == '__main__':
    main()
