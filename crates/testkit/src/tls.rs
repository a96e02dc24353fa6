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
