//! User at the other end of a connection on this machine. Every user can connect to a port of the loopback interface,
//! and the server acts as the user who started it.

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};

/// Size of a table that is read, at most: about 100,000 sockets.
const LARGEST_TABLE: u64 = 16 << 20;

/// Whether the socket at the other end belongs to the user of this process, as far as the kernel tells.
pub(super) fn is_same_user(peer: SocketAddr, own: SocketAddr) -> bool {
    let uid = rustix::process::getuid().as_raw();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables.iter().filter_map(|table| read_table(table)).any(|text| {
        text.lines().skip(1).filter_map(TableRow::parse).any(|row| {
            // From the other end's point of view.
            row.local == plain(peer) && row.remote == plain(own) && row.uid == uid
        })
    })
}

fn read_table(path: &str) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(LARGEST_TABLE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Row of the kernel's table of sockets.
struct TableRow {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    uid: u32,
}

impl TableRow {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        // sl, local, remote, state, queues, timer, retransmits, uid
        let local = address(fields.nth(1)?)?;
        let remote = address(fields.next()?)?;
        let uid = fields.nth(4)?.parse().ok()?;
        Some(TableRow { local, remote, uid })
    }
}

/// An address of the table: words of 32 bits in the machine's byte order, in hexadecimal, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(words.get(at * 8..at * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip: IpAddr = match words.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)
        }
        _ => return None,
    };
    Some((ip.to_canonical(), port))
}

fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn row_is_parsed() {
        let line = "   1: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 1 1 0";
        let row = TableRow::parse(line).unwrap();
        assert_eq!(row.local, ("127.0.0.1".parse().unwrap(), 8080));
        assert_eq!((row.remote.1, row.uid), (50000, 1000));
        let six = address("00000000000000000000000001000000:0050").unwrap();
        assert_eq!(six, ("::1".parse().unwrap(), 80));
        assert!(TableRow::parse("nonsense").is_none());
    }

    #[test]
    fn connection_of_this_process_is_its_users() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_served, peer) = listener.accept().unwrap();
            assert!(is_same_user(peer, listener.local_addr().unwrap()));
            assert!(!is_same_user(listener.local_addr().unwrap(), peer) || cfg!(target_os = "linux"));
            drop(client);
        }
    }
}
