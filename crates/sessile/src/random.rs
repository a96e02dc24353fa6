//! Random bytes from the system.

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

/// Cryptographically secure random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0u8; N];
    std::fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Error::io("read", source, error))?;
    Ok(bytes)
}
