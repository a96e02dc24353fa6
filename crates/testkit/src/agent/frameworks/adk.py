"""An agent on Google's ADK, whose model does what the text of a message says. The first line of output is the address."""

import asyncio
import os
import socket
import sys
import threading

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


def answer(turns):
    """Pieces of the reply, and a file."""
    text = next((part.text for part in turns[-1] if part.text), '')
    word, _, rest = text.partition(' ')
    if word == 'file':
        return [], types.Blob(mime_type='application/octet-stream', data=b'evil \x00\xff bytes\n', display_name='evil.bin')
    if word == 'got':
        files = [part.inline_data for part in turns[-1] if part.inline_data]
        return [f'{file.display_name} {len(file.data)}\n' for file in files], None
    if word == 'stream':
        return [f'chunk {number + 1}\n' for number in range(int(rest))], None
    if word == 'ask':
        return ['what is your name?'], None
    if len(turns) > 1 and any(part.text == 'ask' for part in turns[-2]):
        return [f'hello {text}'], None
    return [rest.split(' ')[-1]], None


class Scripted(BaseLlm):
    model: str = 'scripted'

    async def generate_content_async(self, llm_request, stream=False):
        def response(part, is_partial):
            return LlmResponse(content=types.Content(role='model', parts=[part]), partial=is_partial)

        turns = [item.parts for item in llm_request.contents if item.role == 'user']
        words = next((part.text for part in turns[-1] if part.text), '').split()
        if words[:1] == ['slow']:
            await asyncio.sleep(int(words[1]) / 1000)
        pieces, file = answer(turns)
        if stream:
            for piece in pieces:
                yield response(types.Part(text=piece), True)
        yield response(types.Part(inline_data=file) if file else types.Part(text=''.join(pieces)), False)


listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen()
port = listener.getsockname()[1]
agent = LlmAgent(name='adk', model=Scripted(), description='Follows a script.', instruction='Follow it.')
app = to_a2a(agent, host='127.0.0.1', port=port)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print(f'http://127.0.0.1:{port}', flush=True)
uvicorn.Server(uvicorn.Config(app, log_level='warning')).run(sockets=[listener])
