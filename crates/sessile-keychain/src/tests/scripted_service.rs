//! The client against a scripted service.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use crate::encode::{Encoder, ObjectPath, WireError};
use crate::message::{self, PREFIX};
use sessile::vault::{Keychain, KeychainError, Secret};

use crate::SecretService;

/// Scripted reply: types and a body.
type Answer = (&'static str, Encoder);

/// Stands for the types of an answer that is an error with a text.
const REFUSED: &str = "s";

/// The methods that the client calls.
const METHODS: [&str; 10] = [
    "Hello",
    "OpenSession",
    "ReadAlias",
    "Get",
    "GetAll",
    "Unlock",
    "SearchItems",
    "GetSecrets",
    "CreateItem",
    "Delete",
];

/// The number of the first call that is for the service and not for the bus.
const FIRST: u32 = 2;

/// Connects to a service that answers so, after some noise, and does something there.
fn with_service<T>(
    answer: impl Fn(&str) -> Answer + Send + 'static,
    act: impl FnOnce(&mut SecretService) -> T,
) -> T {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || serve(&mut listener.accept().unwrap().0, &answer));
    let address = format!("unix:path={}", path.display());
    let mut keychain = SecretService::connect(&address, 0, Duration::from_secs(5)).unwrap();
    let done = act(&mut keychain);
    drop(keychain);
    // It ends because the client has gone.
    server.join().unwrap().unwrap_err();
    done
}

fn serve(stream: &mut UnixStream, answer: &impl Fn(&str) -> Answer) -> io::Result<()> {
    let mut said = [0; 256];
    let _ = stream.read(&mut said)?;
    stream.write_all(b"OK 00112233\r\n")?;
    stream.read_exact(&mut said[..b"BEGIN\r\n".len()])?;
    for serial in 1.. {
        let mut call = vec![0; PREFIX];
        stream.read_exact(&mut call)?;
        call.resize(message::length(call.as_slice().try_into().unwrap()).unwrap(), 0);
        stream.read_exact(&mut call[PREFIX..])?;
        let names = |method: &&&str| {
            call.windows(method.len() + 1).any(|some| some == format!("{method}\0").as_bytes())
        };
        let method = METHODS.iter().find(names).unwrap();
        // Like GNOME's at its worst: it does not survive a stranger who wants a session.
        if serial == FIRST && *method != "Get" {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        // A signal, and answers to what was not asked, or not now.
        stream.write_all(b"l\x04\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0")?;
        for (kind, to) in [(2, serial + 1), (3, serial - 1)] {
            stream.write_all(reply(kind, to, &("s", string("noise"))).bytes())?;
        }
        let answer = match *method {
            "Hello" => ("s", string(":1.1")),
            "OpenSession" => (
                "vo",
                body(|body| {
                    body.signature("s")?;
                    body.string("")?;
                    body.string("/session")
                }),
            ),
            method => answer(method),
        };
        let kind = if answer.0 == REFUSED && *method != "Hello" { 3 } else { 2 };
        stream.write_all(reply(kind, serial, &answer).bytes())?;
    }
    Ok(())
}

fn reply(kind: u8, to: u32, (signature, body): &Answer) -> Encoder {
    let mut encoder = Encoder::default();
    encoder.raw(&[b'l', kind, 0, 1]);
    encoder.u32(body.bytes().len().try_into().unwrap());
    encoder.u32(1);
    let fields = encoder.array(8, |encoder| {
        encoder.raw(&[5]);
        encoder.signature("u")?;
        encoder.u32(to);
        encoder.align(8);
        encoder.raw(&[8]);
        encoder.signature("g")?;
        encoder.signature(signature)
    });
    fields.unwrap();
    encoder.align(8);
    encoder.raw(body.bytes());
    encoder
}

fn body(write: impl FnOnce(&mut Encoder) -> Result<(), WireError>) -> Encoder {
    let mut body = Encoder::default();
    write(&mut body).unwrap();
    body
}

fn string(text: &str) -> Encoder {
    body(|body| body.string(text))
}

/// An array with one object path.
fn one(body: &mut Encoder, path: &str) -> Result<(), WireError> {
    body.array(4, |body| body.path(&ObjectPath::parse(path)?))
}

/// The types of what the methods return.
fn types(method: &str) -> &'static str {
    match method {
        "Get" => "v",
        "GetAll" => "a{sv}",
        "Unlock" => "aoo",
        "SearchItems" => "aoao",
        "GetSecrets" => "a{o(oayays)}",
        "CreateItem" => "oo",
        _ => "o",
    }
}

/// A service that has one item, of this secret, and wants to ask the user about everything that changes it.
fn prompting(secret: &'static [u8]) -> impl Fn(&str) -> Answer {
    move |method| {
        let write = |body: &mut Encoder| match method {
            "SearchItems" => {
                one(body, "/c/1")?;
                body.array(4, |_| Ok(()))
            }
            "GetSecrets" => body.array(8, |body| {
                body.string("/c/1")?;
                body.align(8);
                body.string("/session")?;
                body.blob(&[])?;
                body.blob(secret)?;
                body.string("text/plain")
            }),
            "GetAll" => body.array(8, |body| {
                body.string("Attributes")?;
                body.signature("a{ss}")?;
                body.texts(&[("k", "v")])
            }),
            "CreateItem" => {
                body.string("/")?;
                body.string("/prompt")
            }
            "Unlock" => {
                body.array(4, |_| Ok(()))?;
                body.string("/prompt")
            }
            "Delete" => body.string("/prompt"),
            _ => body.string("/c"),
        };
        (types(method), body(write))
    }
}

#[test]
fn operation_that_needs_a_prompt_is_locked() {
    with_service(prompting(b"text"), |keychain| {
        let found = keychain.find(&[("k", "v")]).unwrap();
        assert_eq!(found[0].1.expose(), "text");
        let put = keychain.put("k", &[("k", "v")], &Secret::new("x"));
        assert!(matches!(put, Err(KeychainError::Locked)), "{put:?}");
        let removed = keychain.remove(&[("k", "v")]);
        assert!(matches!(removed, Err(KeychainError::Locked)), "{removed:?}");
    });
}

#[test]
fn item_removed_before_it_is_read_is_searched_again() {
    for (times, there) in [(0, 1), (2, 1), (u32::MAX, 0)] {
        let (sensible, asked) = (prompting(b"text"), AtomicU32::new(0));
        let answer = move |method: &str| {
            if method == "GetSecrets" && asked.fetch_add(1, Ordering::Relaxed) < times {
                return (types(method), body(|body| body.array(8, |_| Ok(()))));
            }
            sensible(method)
        };
        let found = with_service(answer, |keychain| keychain.find(&[("k", "v")]).unwrap());
        assert_eq!(found.len(), there, "gone {times} times");
    }
}

#[test]
fn refusal_that_echoes_the_secret_is_redacted() {
    let answer = |method: &str| match method {
        "CreateItem" => (REFUSED, string("hunter2 is no good")),
        _ => ("o", string("/c")),
    };
    with_service(answer, |keychain| {
        let put = keychain.put("k", &[("k", "v")], &Secret::new("hunter2"));
        assert!(matches!(&put, Err(KeychainError::Refused(text)) if !text.contains("hunter2")), "{put:?}");
        let put = keychain.put("k", &[("k", "v")], &Secret::new("another"));
        assert!(matches!(&put, Err(KeychainError::Refused(text)) if text.contains("no good")), "{put:?}");
    });
}

#[test]
fn secret_that_is_not_utf8_is_an_error() {
    let found = with_service(prompting(b"\xff"), |keychain| keychain.find(&[("k", "v")]));
    assert!(matches!(found, Err(KeychainError::Protocol(_))), "{found:?}");
}

#[test]
fn missing_default_collection_falls_back_to_another() {
    let answer = |method: &str| match method {
        "Get" => (
            "v",
            body(|body| {
                body.signature("ao")?;
                one(body, "/collection/session")
            }),
        ),
        _ => ("o", string("/")),
    };
    let required = with_service(answer, SecretService::require_unlocked);
    assert!(matches!(required, Err(KeychainError::Refused(_))), "{required:?}");
}

/// Calls of every operation; the answers do not matter.
fn ask_everything(keychain: &mut SecretService) {
    let attributes = [("k", "v")];
    let _ = keychain.require_unlocked();
    let _ = keychain.put("k", &attributes, &Secret::new("x"));
    let _ = keychain.find(&attributes);
    let _ = keychain.remove(&attributes);
}

#[test]
fn reply_of_another_type_is_an_error() {
    with_service(
        |_| ("u", Encoder::default()),
        |keychain| {
            let found = keychain.find(&[("k", "v")]);
            assert!(matches!(found, Err(KeychainError::Protocol(_))), "{found:?}");
            ask_everything(keychain);
        },
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn malformed_reply_does_not_panic(
        bodies in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![3 => Just(0), 3 => 0..20_u8, 1 => Just(b'/'), 1 => any::<u8>()], 0..80),
            METHODS.len(),
        ),
        sound in proptest::collection::vec(any::<bool>(), METHODS.len()),
    ) {
        let sensible = prompting(b"text");
        let answer = move |method: &str| {
            let number = METHODS.iter().position(|name| *name == method).unwrap();
            if sound[number] {
                return sensible(method);
            }
            let mut body = Encoder::default();
            body.raw(&bodies[number]);
            (types(method), body)
        };
        with_service(answer, ask_everything);
    }
}
