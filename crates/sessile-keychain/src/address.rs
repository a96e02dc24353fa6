//! Addresses of a bus, in the form of `DBUS_SESSION_BUS_ADDRESS`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::SocketAddr;

use sessile_wire::percent;

/// Unix sockets of an address, in its order: `unix:path=/run/user/1000/bus;unix:abstract=...`. Other transports and
/// invalid entries are skipped.
pub(crate) fn sockets(address: &str) -> Vec<SocketAddr> {
    address.split(';').filter_map(socket).collect()
}

fn socket(address: &str) -> Option<SocketAddr> {
    let pairs = address.strip_prefix("unix:")?;
    // An address can carry a `guid` and other keys, which do not matter here.
    pairs.split(',').find_map(|pair| match pair.split_once('=')? {
        ("path", path) => SocketAddr::from_pathname(OsString::from_vec(percent::decode(path)?)).ok(),
        ("abstract", name) => named(&percent::decode(name)?),
        _ => None,
    })
}

/// A socket that has a name and no file.
#[cfg(target_os = "linux")]
fn named(name: &[u8]) -> Option<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name).ok()
}

#[cfg(not(target_os = "linux"))]
fn named(_name: &[u8]) -> Option<SocketAddr> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paths(address: &str) -> Vec<String> {
        let path = |socket: &SocketAddr| socket.as_pathname().unwrap().to_str().unwrap().to_owned();
        sockets(address).iter().map(path).collect()
    }

    #[test]
    fn path_is_found_among_other_keys() {
        assert_eq!(paths("unix:path=/run/user/1000/bus"), ["/run/user/1000/bus"]);
        assert_eq!(paths("unix:guid=00,path=/a%20b%2cc,x=y"), ["/a b,c"]);
        assert_eq!(paths("tcp:host=h,port=1;unix:path=/a;;unix:path=/b;autolaunch:"), ["/a", "/b"]);
    }

    #[test]
    fn invalid_address_is_skipped() {
        let long = format!("unix:path=/{}", "x".repeat(200));
        for address in ["", "unix:", "unix:path", "unix:tmpdir=/tmp", "unix:path=%2", "unix:path=%zz", &long]
        {
            assert!(sockets(address).is_empty(), "{address}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn abstract_socket_is_parsed() {
        use std::os::linux::net::SocketAddrExt;
        let sockets = sockets("unix:abstract=/tmp/dbus-%61,guid=1");
        assert_eq!(sockets[0].as_abstract_name(), Some(b"/tmp/dbus-a".as_slice()));
    }

    proptest! {
        #[test]
        fn any_address_parses_without_panic(address in "(unix:|path=|abstract=|%|[a-f0-9;,=/]|\\PC){0,20}") {
            let _ = sockets(&address);
        }
    }
}
