"""An agent on python-a2a. The first line of output is the address."""

import os
import socket
import sys
import threading
import time

from python_a2a import A2AServer, AgentCard, TaskState, TaskStatus, run_server


class Sentence(A2AServer):
    def handle_task(self, task):
        task.artifacts = [{'parts': [{'type': 'text', 'text': 'The answer is 42.'}]}]
        task.status = TaskStatus(state=TaskState.COMPLETED)
        return task


listener = socket.socket()
listener.bind(('127.0.0.1', 0))
port = listener.getsockname()[1]
# The framework binds the port itself.
listener.close()
url = f'http://127.0.0.1:{port}'
card = AgentCard(name='python-a2a', description='Says one sentence.', url=url, version='1')
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()


def announce(out):
    while True:
        try:
            socket.create_connection(('127.0.0.1', port)).close()
            return print(url, file=out, flush=True)
        except OSError:
            time.sleep(0.05)


threading.Thread(target=announce, args=(sys.stdout,), daemon=True).start()
# The framework prints a banner.
sys.stdout = sys.stderr
run_server(Sentence(agent_card=card), host='127.0.0.1', port=port)
