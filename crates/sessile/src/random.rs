//! Random bytes from the system.

use std::path::Path;

use crate::error::{Error, Result};

/// Cryptographically secure random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0u8; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// One system call, where a file would take three.
#[cfg(target_os = "linux")]
fn fill(mut rest: &mut [u8]) -> Result<()> {
    use rustix::io::Errno;
    use rustix::rand::{GetRandomFlags, getrandom};

    while !rest.is_empty() {
        match getrandom(&mut *rest, GetRandomFlags::empty()) {
            Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
            // A signal can interrupt a large request.
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::io("call", Path::new("getrandom"), error.into())),
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn fill(bytes: &mut [u8]) -> Result<()> {
    use std::io::Read;

    let source = Path::new("/dev/urandom");
    let read = std::fs::File::open(source).and_then(|mut file| file.read_exact(bytes));
    read.map_err(|error| Error::io("read", source, error))
}

#[cfg(test)]
mod tests {
    #[test]
    fn requests_of_all_sizes_are_filled() {
        let (short, long) = (super::bytes::<16>().unwrap(), super::bytes::<4096>().unwrap());
        assert_ne!(short, super::bytes::<16>().unwrap());
        assert!(long.chunks(32).all(|chunk| chunk != [0; 32]), "{long:?}");
    }
}
