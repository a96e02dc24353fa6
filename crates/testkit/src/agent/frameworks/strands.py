"""An agent on Strands, whose model does what the text of a message says. The first line of output is the address."""

import asyncio
import os
import socket
import sys
import threading

import uvicorn
from strands import Agent
from strands.models import Model
from strands.multiagent.a2a import A2AServer


def answer(turns):
    """Pieces of the reply."""
    text = next((part['text'] for part in turns[-1] if 'text' in part), '')
    word, _, rest = text.partition(' ')
    if word == 'got':
        files = [part['document'] for part in turns[-1] if 'document' in part]
        return [f'{file["name"]} {len(file["source"]["bytes"])}\n' for file in files]
    if word == 'stream':
        return [f'chunk {number + 1}\n' for number in range(int(rest))]
    if word == 'ask':
        return ['what is your name?']
    if len(turns) > 1 and any(part.get('text') == 'ask' for part in turns[-2]):
        return [f'hello {text}']
    return [rest.split(' ')[-1]]


class Scripted(Model):
    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *args, **options):
        yield {}

    async def stream(self, messages, *args, **options):
        turns = [message['content'] for message in messages if message['role'] == 'user']
        words = next((part['text'] for part in turns[-1] if 'text' in part), '').split()
        if words[:1] == ['slow']:
            await asyncio.sleep(int(words[1]) / 1000)
        yield {'messageStart': {'role': 'assistant'}}
        yield {'contentBlockStart': {'start': {}}}
        for piece in answer(turns):
            # A model sends tokens, not lines.
            for token in piece.replace(' ', '| ').split('|'):
                yield {'contentBlockDelta': {'delta': {'text': token}}}
                await asyncio.sleep(0.02)
        yield {'contentBlockStop': {}}
        yield {'messageStop': {'stopReason': 'end_turn'}}


listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen()
port = listener.getsockname()[1]
agent = Agent(model=Scripted(), name='strands', description='Follows a script.', callback_handler=None)
app = A2AServer(agent, host='127.0.0.1', port=port).to_starlette_app()
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print(f'http://127.0.0.1:{port}', flush=True)
uvicorn.Server(uvicorn.Config(app, log_level='warning')).run(sockets=[listener])
