//! As much of the protocols of databases as a client needs for one query.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

use super::{LARGEST, PATIENCE};

/// Number of a request for encryption by TLS, and by GSSAPI, in place of a version of the protocol.
const ENCRYPTION: [u32; 2] = [80_877_103, 80_877_104];

/// Serves a client of PostgreSQL's protocol, version 3.
pub(super) fn postgresql(name: &str, mut stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    loop {
        let startup = postgresql_body(stream)?;
        let version = startup.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        if !version.is_some_and(|version| ENCRYPTION.contains(&version)) {
            break;
        }
        stream.write_all(b"N")?;
    }
    // The password in clear text.
    stream.write_all(&postgresql_message(b'R', &3_u32.to_be_bytes()))?;
    let (_, password) = postgresql_request(stream)?;
    if password != format!("password-of-{name}\0").as_bytes() {
        let text = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed\0\0";
        return stream.write_all(&postgresql_message(b'E', text));
    }
    stream.write_all(&postgresql_message(b'R', &0_u32.to_be_bytes()))?;
    stream.write_all(&postgresql_message(b'Z', b"I"))?;
    loop {
        let (kind, _) = postgresql_request(stream)?;
        if kind != b'Q' {
            return Ok(());
        }
        let value = format!("database-of-{name}");
        // One column of text, without a table: name, table, number, type, size, modifier, format.
        let column = [&1_u16.to_be_bytes()[..], b"s\0", &[0; 6], &25_u32.to_be_bytes(), &[0xff; 6], &[0; 2]];
        let size = u32::try_from(value.len()).expect("it is short").to_be_bytes();
        let row = [&1_u16.to_be_bytes()[..], &size, value.as_bytes()];
        let answer = [
            postgresql_message(b'T', &column.concat()),
            postgresql_message(b'D', &row.concat()),
            postgresql_message(b'C', b"SELECT 1\0"),
            postgresql_message(b'Z', b"I"),
        ];
        stream.write_all(&answer.concat())?;
    }
}

fn postgresql_message(kind: u8, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 4).expect("it is short");
    [&[kind][..], &size.to_be_bytes(), body].concat()
}

fn postgresql_request(mut stream: &TcpStream) -> Result<(u8, Vec<u8>)> {
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    Ok((kind[0], postgresql_body(stream)?))
}

/// Body of a message; the size before it includes its own four bytes.
fn postgresql_body(mut stream: &TcpStream) -> Result<Vec<u8>> {
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let size = u32::from_be_bytes(size) as usize;
    let size = size.checked_sub(4).ok_or_else(|| Error::from(ErrorKind::InvalidData))?;
    let mut body = vec![0; LARGEST.min(size)];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// The protocol since 4.1, long flags, logins by plug-in.
const MYSQL_CAPABILITIES: u32 = 0x1 | 0x200 | 0x8000 | 0x0008_0000;

const MYSQL_END_OF_ROWS: [u8; 5] = [0xfe, 0, 0, 2, 0];

/// Serves a client of MySQL's protocol, version 10. Any password is right.
pub(super) fn mysql(name: &str, stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let [low, high] = [MYSQL_CAPABILITIES & 0xffff, MYSQL_CAPABILITIES >> 16];
    let bytes = |half: u32| u16::try_from(half).expect("it is half of one").to_le_bytes();
    let greeting = [
        b"\x0a8.0.0\0\x01\0\0\0scramble\0".as_slice(),
        &bytes(low),
        b"\x21\x02\0",
        &bytes(high),
        b"\x15\0\0\0\0\0\0\0\0\0\0scramble-end\0mysql_native_password\0",
    ];
    mysql_write(stream, 0, &greeting.concat())?;
    let (sequence, _) = mysql_read(stream)?;
    mysql_write(stream, sequence + 1, &[0, 0, 0, 2, 0, 0, 0])?;
    loop {
        let (sequence, request) = mysql_read(stream)?;
        match request.first() {
            None | Some(1) => return Ok(()),
            Some(3) => {
                let value = format!("database-of-{name}");
                let size = u8::try_from(value.len()).expect("it is short");
                // One column: catalog, schema, tables, names, then character set, size, type, flags, decimals.
                let column = b"\x03def\0\0\0\x01s\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0";
                let row = [&[size][..], value.as_bytes()].concat();
                let packets = [&[1][..], column, &MYSQL_END_OF_ROWS, &row, &MYSQL_END_OF_ROWS];
                for (at, packet) in (sequence + 1..).zip(packets) {
                    mysql_write(stream, at, packet)?;
                }
            }
            Some(_) => mysql_write(stream, sequence + 1, &[0, 0, 0, 2, 0, 0, 0])?,
        }
    }
}

fn mysql_write(mut stream: &TcpStream, sequence: u8, packet: &[u8]) -> Result<()> {
    let [low, middle, high, _] = u32::try_from(packet.len()).expect("it is short").to_le_bytes();
    stream.write_all(&[&[low, middle, high, sequence][..], packet].concat())
}

fn mysql_read(mut stream: &TcpStream) -> Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let [low, middle, high, sequence] = head;
    let size = u32::from_le_bytes([low, middle, high, 0]) as usize;
    let mut packet = vec![0; LARGEST.min(size)];
    stream.read_exact(&mut packet)?;
    Ok((sequence, packet))
}
