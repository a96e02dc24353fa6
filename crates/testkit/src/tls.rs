//! A server on this machine that speaks TLS, with an authority of its own that nobody trusts by default.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::node::NodeServer;
use crate::require_tool;

/// Answers `/` with a text that says the request's method, and `/away` with a redirect to `/`.
const SERVER: &str = "
import { createServer } from 'node:https';
import { readFileSync } from 'node:fs';
const server = createServer({ key: readFileSync('server.key'), cert: readFileSync('server.pem') }, (request, response) => {
  if (request.url === '/away') response.writeHead(302, { location: '/' }).end();
  else response.end(`${request.method} over TLS`);
});
server.listen(0, '127.0.0.1', () => console.log(`https://localhost:${server.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume();
";

/// An A2A agent that answers those who have a certificate of the authority: a card, and the text of each message.
const MUTUAL_AGENT: &str = "
import { createServer } from 'node:https';
import { readFileSync } from 'node:fs';
const read = (name) => readFileSync(name);
const options = {
  key: read('server.key'), cert: read('server.pem'), ca: read('ca.pem'), requestCert: true, rejectUnauthorized: true,
};
const server = createServer(options, (request, response) => {
  const url = `https://localhost:${server.address().port}`;
  const say = (value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  if (request.method === 'GET') {
    say({
      name: 'mutual', description: 'Requires a client certificate.', version: '1', capabilities: {}, skills: [],
      defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
      supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    });
    return;
  }
  let body = '';
  request.on('data', (piece) => body += piece).on('end', () => {
    const { id, params } = JSON.parse(body);
    const peer = request.socket.getPeerCertificate().subject.CN;
    const text = `${peer}: ${params.message.parts[0].text}`;
    const message = { messageId: 'r', contextId: 'c', role: 'ROLE_AGENT', parts: [{ text }] };
    say({ jsonrpc: '2.0', id, result: { message } });
  });
});
server.listen(0, '127.0.0.1', () => console.log(`https://localhost:${server.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume();
";

/// The steps of openssl for the certificate of a client, by the same authority.
const CLIENT_CERTIFICATE: [&str; 3] = [
    "req -newkey rsa:2048 -nodes -subj /CN=ann -addext subjectAltName=DNS:ann -keyout client.key -out client.csr",
    "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out client.pem",
    // Without extensions it is of version 1, which TLS libraries refuse.
    "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out old.pem",
];

/// The steps of openssl: an authority, and a certificate by it for `localhost`.
const CERTIFICATES: [&str; 3] = [
    "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=Nobody -keyout ca.key -out ca.pem",
    "req -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
     -keyout server.key -out server.csr",
    "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy \
     -out server.pem",
];

/// An HTTPS server on a port of its own, which ends when this is dropped.
pub struct TlsServer {
    server: NodeServer,
    dir: TempDir,
}

impl TlsServer {
    /// Makes the certificates and starts it.
    #[track_caller]
    pub fn start() -> Self {
        let dir = TempDir::new().expect("a directory");
        certificates(dir.path());
        TlsServer { server: NodeServer::start(SERVER, &[], dir.path()), dir }
    }

    /// Starts an A2A agent that requires a certificate of its clients (mTLS).
    #[track_caller]
    pub fn start_mutual_agent() -> Self {
        let dir = TempDir::new().expect("a directory");
        certificates(dir.path());
        for step in CLIENT_CERTIFICATE {
            openssl(step, dir.path());
        }
        TlsServer { server: NodeServer::start(MUTUAL_AGENT, &[], dir.path()), dir }
    }

    /// Certificate of the client `ann` of the agent, and its private key, in PEM.
    pub fn client_certificate(&self) -> (PathBuf, PathBuf) {
        (self.dir.path().join("client.pem"), self.dir.path().join("client.key"))
    }

    /// Certificate of the same client in version 1 of X.509, for the same key.
    pub fn old_client_certificate(&self) -> PathBuf {
        self.dir.path().join("old.pem")
    }

    /// The address of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.address())
    }

    /// The certificate of its authority, in PEM.
    pub fn authority(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }
}

/// Makes an authority and a certificate for `localhost` in a directory.
#[track_caller]
pub(crate) fn certificates(dir: &Path) {
    for step in CERTIFICATES {
        openssl(step, dir);
    }
}

#[track_caller]
fn openssl(step: &str, dir: &Path) {
    let done = Command::new(require_tool("openssl"))
        .args(step.split_whitespace())
        .current_dir(dir)
        .output()
        .expect("openssl starts");
    assert!(done.status.success(), "openssl {step}:\n{}", String::from_utf8_lossy(&done.stderr));
}
