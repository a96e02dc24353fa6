//! Connection to a D-Bus message bus: one method call at a time, each with its reply, and a deadline for all of them.
//!
//! No thread or queue stands behind it. Signals and other messages are read and dropped.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sessile_wire::hex::hex;
use zeroize::Zeroizing;

use crate::address::sockets;
use crate::encode::{Encoder, ObjectPath, WireError};
use crate::message::{self, IncomingMessage, MethodCall, MethodReply};
use sessile::vault::KeychainError;

/// The longest wait that makes sense; a clock cannot be read arbitrarily far ahead.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The longest line that a bus says before messages begin.
const MAX_LINE_LENGTH: usize = 1024;

/// Limit of an error's text.
const MAX_ERROR_LENGTH: usize = 500;

/// A connection to a bus.
pub(crate) struct Bus {
    stream: UnixStream,
    serial: u32,
    deadline: Instant,
    /// After half a message nothing that follows can be understood.
    broken: bool,
}

/// An error that somebody on the bus answered with.
#[derive(Debug)]
pub(crate) struct ErrorReply {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl From<ErrorReply> for KeychainError {
    fn from(error: ErrorReply) -> Self {
        let ErrorReply { name, text } = error;
        let text = if text.is_empty() { name.clone() } else { text };
        let text = text.chars().take(MAX_ERROR_LENGTH).collect();
        match name.strip_prefix("org.freedesktop.") {
            Some("Secret.Error.IsLocked") => KeychainError::Locked,
            // The bus answers so if the service crashed or was too slow.
            Some("DBus.Error.ServiceUnknown" | "DBus.Error.NameHasNoOwner" | "DBus.Error.NoReply") => {
                KeychainError::Unreachable(text)
            }
            Some(name) if name.starts_with("DBus.Error.Spawn.") => KeychainError::Unreachable(text),
            _ => KeychainError::Refused(text),
        }
    }
}

impl Bus {
    /// Connects to the first of the address's sockets that anyone listens on, as this user.
    pub(crate) fn connect(address: &str, uid: u32, timeout: Duration) -> Result<Self, KeychainError> {
        let deadline = deadline(timeout);
        let mut problem = format!("not the address of a Unix socket: {address:?}");
        for socket in sockets(address) {
            match dial(socket.clone(), deadline) {
                Ok(stream) => {
                    let mut bus = Bus { stream, serial: 0, deadline, broken: false };
                    bus.authenticate(uid)?;
                    bus.hello()?;
                    return Ok(bus);
                }
                Err(error) => problem = format!("{socket:?}: {error}"),
            }
        }
        Err(KeychainError::Unreachable(problem))
    }

    /// From now on, all calls together may take this long.
    pub(crate) fn allow(&mut self, timeout: Duration) {
        self.deadline = deadline(timeout);
    }

    /// Calls a method and waits for its answer.
    pub(crate) fn call(
        &mut self,
        call: &MethodCall<'_>,
    ) -> Result<Result<MethodReply, ErrorReply>, KeychainError> {
        if self.broken {
            return Err(KeychainError::Unreachable("the connection failed earlier".to_owned()));
        }
        // Zero is not a number of a message.
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        let message = call.encode(self.serial)?;
        // Set before, reset after: whichever way a call fails, the next answer could belong to it.
        self.broken = true;
        self.write(message.bytes())?;
        let answer = self.answer()?;
        self.broken = false;
        Ok(answer)
    }

    /// The next message that answers the last call.
    fn answer(&mut self) -> Result<Result<MethodReply, ErrorReply>, KeychainError> {
        loop {
            let mut prefix = [0; message::PREFIX];
            self.read(&mut prefix)?;
            // Bounded before it is allocated: the length is the peer's claim.
            let mut bytes = Zeroizing::new(vec![0; message::length(&prefix)?]);
            let (start, rest) =
                bytes.split_at_mut_checked(message::PREFIX).ok_or(WireError("unexpected end of data"))?;
            start.copy_from_slice(&prefix);
            self.read(rest)?;
            match IncomingMessage::decode(bytes)? {
                IncomingMessage::MethodReturn(to, reply) if to == self.serial => return Ok(Ok(reply)),
                IncomingMessage::Error(to, name, text) if to == self.serial => {
                    return Ok(Err(ErrorReply { name, text }));
                }
                // Signals and late answers are for nobody, and the deadline bounds how many are read.
                _ => {}
            }
        }
    }

    /// Says who this is. The bus asks the kernel whether it is true.
    fn authenticate(&mut self, uid: u32) -> Result<(), KeychainError> {
        // The D-Bus specification has the user id as decimal text, in hexadecimal.
        let hex = hex(uid.to_string().as_bytes());
        // The zero byte carries the credentials on systems that send them with data.
        self.write(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
        let mut said = Vec::new();
        // Nothing follows the line, for it is the client's turn then.
        while !said.ends_with(b"\r\n") {
            let mut some = [0; 64];
            let length = self.read_some(&mut some)?;
            said.extend_from_slice(&some[..length]);
            if said.len() > MAX_LINE_LENGTH {
                return Err(KeychainError::Protocol("unterminated line".to_owned()));
            }
        }
        match said.split(|byte| byte.is_ascii_whitespace()).next() {
            Some(b"OK") => self.write(b"BEGIN\r\n"),
            Some(b"REJECTED" | b"ERROR") => {
                Err(KeychainError::Unreachable(format!("the bus refused the login of user {uid}")))
            }
            _ => Err(KeychainError::Protocol("not a message bus".to_owned())),
        }
    }

    /// The first call, without which a bus takes no other.
    fn hello(&mut self) -> Result<(), KeychainError> {
        let call = MethodCall {
            destination: "org.freedesktop.DBus",
            path: &ObjectPath::parse("/org/freedesktop/DBus")?,
            interface: "org.freedesktop.DBus",
            member: "Hello",
            signature: "",
            body: Encoder::default(),
        };
        self.call(&call)??.body("s")?.string()?;
        Ok(())
    }

    /// The time that is left.
    fn left(&self) -> Result<Duration, KeychainError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(failed(&ErrorKind::TimedOut.into())) } else { Ok(left) }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), KeychainError> {
        let mut filled = 0;
        while filled < buffer.len() {
            filled += self.read_some(&mut buffer[filled..])?;
        }
        Ok(())
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, KeychainError> {
        loop {
            let left = self.left()?;
            // Before each read: a peer that sends a byte at a time must not extend the deadline.
            self.stream.set_read_timeout(Some(left)).map_err(|error| failed(&error))?;
            match self.stream.read(buffer) {
                Ok(0) => return Err(failed(&ErrorKind::UnexpectedEof.into())),
                Ok(length) => return Ok(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), KeychainError> {
        while !bytes.is_empty() {
            let left = self.left()?;
            self.stream.set_write_timeout(Some(left)).map_err(|error| failed(&error))?;
            match self.stream.write(bytes) {
                Ok(length) => bytes = bytes.get(length..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }
}

/// Connects with a deadline. A hung bus blocks `connect` once its backlog is full, and the standard library has no
/// timeout for that. So a thread connects; it ends when the bus continues or exits.
fn dial(socket: SocketAddr, deadline: Instant) -> io::Result<UnixStream> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("keychain".to_owned())
        .spawn(move || sender.send(UnixStream::connect_addr(&socket)))?;
    let left = deadline.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

fn deadline(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(MAX_TIMEOUT)
}

fn failed(error: &io::Error) -> KeychainError {
    KeychainError::Unreachable(match error.kind() {
        // Linux reports a read that timed out as WouldBlock.
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "timed out".to_owned(),
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            "the bus closed the connection".to_owned()
        }
        _ => error.to_string(),
    })
}
