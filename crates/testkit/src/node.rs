//! Servers written for node or Python, which run as long as somebody holds them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::require_tool;

/// Timeout of a server's start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A script that says on its first line where it listens, and ends with its standard input.
pub(crate) struct NodeServer {
    child: Child,
    address: String,
}

impl NodeServer {
    /// Starts it, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(script: &str, arguments: &[&str], dir: &Path) -> Self {
        let mut command = Command::new(require_tool("node"));
        command
            .args(["--input-type=module", "--eval", script, "--"])
            .args(arguments)
            .current_dir(dir)
            // A developer's debugger or preloaded module must not start in the server.
            .env_remove("NODE_OPTIONS");
        NodeServer::spawn(command, PATIENCE)
    }

    /// Starts what says on its first line where it listens, and waits for that.
    #[track_caller]
    pub(crate) fn spawn(mut command: Command, patience: Duration) -> Self {
        let complaints = tempfile::tempfile().expect("a file");
        let mut child = command
            // Held open: the script ends with its input, also if this process is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone().expect("a descriptor"))
            .spawn()
            .expect("the server's program starts");
        let stdout = child.stdout.take().expect("its output");
        let (said, heard) = mpsc::channel();
        // A thread, because a blocking read has no timeout.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = said.send(read.map(|_| line.trim().to_owned()));
        });
        match heard.recv_timeout(patience) {
            Ok(Ok(address)) if !address.is_empty() => NodeServer { child, address },
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the server did not start within {patience:?}:\n{}", read_from_start(complaints))
            }
        }
    }

    /// Address from its first line of output.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for NodeServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A GET without TLS, for looking at a server from outside the code under test: the status and the body.
#[track_caller]
pub(crate) fn get(url: &str, header: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{header}\r\n")
        .expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (status, body.to_owned())
}

fn read_from_start(mut file: File) -> String {
    let mut text = String::new();
    let _ = file.rewind();
    let _ = file.read_to_string(&mut text);
    text
}
