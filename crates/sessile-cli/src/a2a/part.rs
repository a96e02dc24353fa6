//! What messages and artifacts are made of.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};

use super::dialect::Dialect;

/// One piece of a message or an artifact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// Text.
    Text(String),
    /// A file's content.
    File {
        /// What is in it.
        bytes: Vec<u8>,
        /// What it is called. From an agent it may be any text, also a path to somewhere else.
        name: Option<String>,
        /// Its media type.
        mime: Option<String>,
    },
    /// Where a file is.
    Link {
        /// The address.
        url: String,
        /// What it is called.
        name: Option<String>,
        /// Its media type.
        mime: Option<String>,
    },
    /// Structured data.
    Data(Value),
    /// What none of these is, as the agent said it.
    Other(Value),
}

/// Agents leave padding away, and some write the alphabet of addresses.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Part {
    pub(super) fn to_json(&self, dialect: Dialect) -> Value {
        match (self, dialect) {
            (Part::Other(raw), _) => raw.clone(),
            (Part::Text(text), Dialect::Kinds) => json!({ "kind": "text", "text": text }),
            (Part::Text(text), _) => json!({ "text": text }),
            (Part::Data(data), Dialect::One) => json!({ "data": data }),
            (Part::Data(data), Dialect::Kinds) => json!({ "kind": "data", "data": object(data) }),
            (Part::Data(data), Dialect::Buffers) => json!({ "data": { "data": object(data) } }),
            (Part::File { bytes, name, mime }, dialect) => {
                let mut encoded = BASE64.encode(bytes);
                if dialect == Dialect::Buffers {
                    encoded = BASE64.encode(encoded);
                }
                file(dialect, ["raw", "bytes", "fileWithBytes"], &encoded, name, mime)
            }
            (Part::Link { url, name, mime }, dialect) => {
                file(dialect, ["url", "uri", "fileWithUri"], url, name, mime)
            }
        }
    }

    pub(super) fn from_json(raw: &Value, dialect: Dialect) -> Self {
        let other = || Part::Other(raw.clone());
        if let Some(text) = text(raw, &["text"]) {
            return Part::Text(text);
        }
        if let Some(data) = raw.get("data") {
            let inner = if dialect == Dialect::Buffers { data.get("data") } else { None };
            return Part::Data(inner.unwrap_or(data).clone());
        }
        let file = raw.get("file").unwrap_or(raw);
        let (name, mime) = (text(file, &["filename", "name"]), text(file, &["mediaType", "mimeType"]));
        if let Some(url) = text(file, &["url", "uri", "fileWithUri"]) {
            return Part::Link { url, name, mime };
        }
        let Some(encoded) = text(file, &["raw", "bytes", "fileWithBytes"]) else { return other() };
        match BASE64.decode(encoded.replace('-', "+").replace('_', "/")) {
            Ok(bytes) if dialect == Dialect::Buffers => {
                Part::File { bytes: decoded_again(bytes), name, mime }
            }
            Ok(bytes) => Part::File { bytes, name, mime },
            Err(_) => other(),
        }
    }
}

/// In [`Dialect::Buffers`] the official SDK encodes a file twice, and cannot read what is encoded once. What comes is
/// taken as such wherever it can be.
fn decoded_again(bytes: Vec<u8>) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(&bytes).unwrap_or(bytes)
}

/// Version 0.3 has only objects for data.
fn object(data: &Value) -> Value {
    if data.is_object() { data.clone() } else { json!({ "value": data }) }
}

fn file(
    dialect: Dialect,
    keys: [&str; 3],
    content: &str,
    name: &Option<String>,
    mime: &Option<String>,
) -> Value {
    let (key, name_key, mime_key) = match dialect {
        Dialect::One => (keys[0], "filename", "mediaType"),
        Dialect::Kinds => (keys[1], "name", "mimeType"),
        Dialect::Buffers => (keys[2], "name", "mimeType"),
    };
    let mut file = Map::new();
    file.insert(key.to_owned(), content.into());
    for (key, value) in [(name_key, name), (mime_key, mime)] {
        if let Some(value) = value {
            file.insert(key.to_owned(), value.as_str().into());
        }
    }
    match dialect {
        Dialect::One => file.into(),
        Dialect::Kinds => json!({ "kind": "file", "file": file }),
        Dialect::Buffers => json!({ "file": file }),
    }
}

/// The first of these fields that is a text.
pub(super) fn text(raw: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| raw.get(key)?.as_str()).map(str::to_owned)
}

/// The texts among the parts, each on lines of its own.
pub(super) fn joined(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Part; 5] {
        let (name, mime) = (Some("a.bin".to_owned()), Some("application/x".to_owned()));
        [
            Part::Text("hi".to_owned()),
            Part::File { bytes: vec![0, 255, 62], name: name.clone(), mime: mime.clone() },
            Part::File { bytes: Vec::new(), name: None, mime: None },
            Part::Link { url: "https://a.example/x".to_owned(), name, mime },
            Part::Data(json!({ "data": { "n": 1 } })),
        ]
    }

    #[test]
    fn every_dialect_is_read_as_it_is_written() {
        for dialect in [Dialect::One, Dialect::Kinds, Dialect::Buffers] {
            for part in all() {
                assert_eq!(Part::from_json(&part.to_json(dialect), dialect), part, "{dialect:?}");
            }
        }
    }

    #[test]
    fn each_dialect_has_its_own_names() {
        let [text, file, _, link, _] = all();
        assert_eq!(text.to_json(Dialect::Kinds), json!({"kind": "text", "text": "hi"}));
        let one = json!({"raw": "AP8+", "filename": "a.bin", "mediaType": "application/x"});
        assert_eq!(file.to_json(Dialect::One), one);
        let inner =
            json!({"fileWithUri": "https://a.example/x", "name": "a.bin", "mimeType": "application/x"});
        assert_eq!(link.to_json(Dialect::Buffers), json!({ "file": inner }));
    }

    #[test]
    fn the_old_binding_encodes_files_twice_and_reads_them_either_way() {
        let [_, file, ..] = all();
        let Part::File { bytes, .. } = &file else { panic!("no file") };
        assert_eq!(file.to_json(Dialect::Buffers)["file"]["fileWithBytes"], BASE64.encode("AP8+"));
        let once = json!({"file": {"fileWithBytes": "AP8+", "name": "a.bin", "mimeType": "application/x"}});
        assert_eq!(Part::from_json(&once, Dialect::Buffers), file, "{bytes:?}");
    }

    #[test]
    fn what_is_unknown_or_broken_stays_as_it_is() {
        for raw in [json!({"hologram": 1}), json!({"raw": "!"}), json!(7), json!({"file": []})] {
            let part = Part::from_json(&raw, Dialect::One);
            assert_eq!(part, Part::Other(raw.clone()));
            assert_eq!(part.to_json(Dialect::One), raw);
        }
        let unpadded = json!({"raw": "_-8"});
        let file = Part::File { bytes: vec![255, 239], name: None, mime: None };
        assert_eq!(Part::from_json(&unpadded, Dialect::One), file);
    }
}
