//! Parts of messages and artifacts.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::field::string;

/// Part of a message or an artifact.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Text of a file. Only version 1.0 has it.
    TextFile {
        /// Content.
        text: String,
        /// File name. From an agent it may be any text, also a path out of the directory.
        name: String,
        /// Media type.
        mime: Option<String>,
    },
    /// Content of a file.
    File {
        /// Content.
        bytes: Vec<u8>,
        /// File name. From an agent it may be any text, also a path out of the directory.
        name: Option<String>,
        /// Media type.
        mime: Option<String>,
    },
    /// Link to a file.
    Link {
        /// URL of the file.
        url: String,
        /// File name.
        name: Option<String>,
        /// Media type.
        mime: Option<String>,
    },
    /// Structured data.
    Data(Value),
    /// Text or data with a media type that the user chose. Agents' parts are not read as this.
    Typed {
        /// Text or data.
        part: Box<Part>,
        /// Media type.
        mime: String,
    },
    /// Any other part as the agent sent it.
    Other(Value),
}

/// Agents omit the padding; some use the URL-safe alphabet.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Part {
    pub(super) fn to_json(&self, dialect: Dialect) -> Value {
        match (self, dialect) {
            (Part::Other(raw), _) => raw.clone(),
            (Part::Typed { part, mime }, dialect) => {
                let mut raw = part.to_json(dialect);
                // In version 0.3 only files have a media type; the metadata of a part is free.
                match (dialect, raw.as_object_mut()) {
                    (Dialect::V1, Some(raw)) => raw.insert("mediaType".to_owned(), mime.as_str().into()),
                    (_, Some(raw)) => raw.insert("metadata".to_owned(), json!({ "mimeType": mime })),
                    (_, None) => None,
                };
                raw
            }
            (Part::Text(text), Dialect::V03JsonRpc) => json!({ "kind": "text", "text": text }),
            (Part::Text(text), _) => json!({ "text": text }),
            (Part::TextFile { text, .. }, Dialect::V03JsonRpc) => json!({ "kind": "text", "text": text }),
            (Part::TextFile { text, .. }, Dialect::V03Rest) => json!({ "text": text }),
            (Part::TextFile { text, name, mime }, Dialect::V1) => {
                let mut raw = json!({ "text": text, "filename": name });
                if let Some(mime) = mime {
                    raw["mediaType"] = mime.as_str().into();
                }
                raw
            }
            (Part::Data(data), Dialect::V1) => json!({ "data": data }),
            (Part::Data(data), Dialect::V03JsonRpc) => json!({ "kind": "data", "data": object(data) }),
            (Part::Data(data), Dialect::V03Rest) => json!({ "data": { "data": object(data) } }),
            (Part::File { bytes, name, mime }, dialect) => {
                let mut encoded = BASE64.encode(bytes);
                // The official SDK of this dialect encodes files twice, and reads nothing else.
                if dialect == Dialect::V03Rest {
                    encoded = BASE64.encode(encoded);
                }
                file(dialect, ["raw", "bytes", "fileWithBytes"], &encoded, name, mime)
            }
            (Part::Link { url, name, mime }, dialect) => {
                file(dialect, ["url", "uri", "fileWithUri"], url, name, mime)
            }
        }
    }

    /// Summary of a part for people: its text, its data as JSON, or the kind of its file.
    pub fn summary(&self) -> String {
        let file = |name: &Option<String>, mime: &Option<String>, size: Option<usize>| {
            let name = name.as_deref().map_or_else(|| "file".to_owned(), |name| format!("file {name}"));
            let size = size.map(|size| format!("{size} bytes"));
            let facts: Vec<String> = mime.iter().cloned().chain(size).collect();
            if facts.is_empty() { name } else { format!("{name} ({})", facts.join(", ")) }
        };
        match self {
            Part::Text(text) | Part::TextFile { text, .. } => text.clone(),
            Part::Typed { part, .. } => part.summary(),
            Part::Data(data) => format!("{data:#}"),
            Part::File { bytes, name, mime } => format!("[{}]", file(name, mime, Some(bytes.len()))),
            Part::Link { url, name, mime } => format!("[{}: {url}]", file(name, mime, None)),
            Part::Other(raw) => format!("[part of an unknown kind: {raw}]"),
        }
    }

    /// Whether it is a text without a file name.
    pub fn is_text(&self) -> bool {
        matches!(self, Part::Text(_))
    }

    /// Text, also of a file.
    pub fn text(&self) -> Option<&str> {
        match self {
            Part::Text(text) | Part::TextFile { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Appends a part if both are chunks of one text, or gives it back.
    #[must_use]
    pub fn append(&mut self, part: Part) -> Option<Part> {
        match (self, part) {
            (Part::Text(text), Part::Text(more)) => text.push_str(&more),
            (Part::TextFile { text, name, .. }, Part::TextFile { text: more, name: other, .. })
                if *name == other =>
            {
                text.push_str(&more);
            }
            (_, part) => return Some(part),
        }
        None
    }

    pub(super) fn from_json(raw: &Value, dialect: Dialect) -> Self {
        let other = || Part::Other(raw.clone());
        // By the fields, not by `kind`, which only one of the dialects has.
        if let Some(text) = string(raw, &["text"]) {
            return match string(raw, &["filename"]).filter(|name| !name.is_empty()) {
                Some(name) => Part::TextFile { text, name, mime: string(raw, &["mediaType"]) },
                None => Part::Text(text),
            };
        }
        if let Some(data) = raw.get("data") {
            let inner = if dialect == Dialect::V03Rest { data.get("data") } else { None };
            return Part::Data(inner.unwrap_or(data).clone());
        }
        // Version 1.0 has the fields of a file in the part itself.
        let file = raw.get("file").unwrap_or(raw);
        // The names of version 1.0, then those of version 0.3.
        let (name, mime) = (string(file, &["filename", "name"]), string(file, &["mediaType", "mimeType"]));
        if let Some(url) = string(file, &["url", "uri", "fileWithUri"]) {
            return Part::Link { url, name, mime };
        }
        let Some(encoded) = string(file, &["raw", "bytes", "fileWithBytes"]) else { return other() };
        match BASE64.decode(encoded.replace('-', "+").replace('_', "/")) {
            Ok(bytes) if dialect == Dialect::V03Rest => {
                Part::File { bytes: decoded_again(bytes), name, mime }
            }
            Ok(bytes) => Part::File { bytes, name, mime },
            // Content that cannot be decoded is kept as it was sent, and not lost.
            Err(_) => other(),
        }
    }
}

/// In [`Dialect::V03Rest`] the official SDK encodes files twice and cannot read those that are encoded once. Input that is not
/// valid after the second decoding was encoded once.
fn decoded_again(bytes: Vec<u8>) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(&bytes).unwrap_or(bytes)
}

/// Data as an object: version 0.3 has no other data.
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
        Dialect::V1 => (keys[0], "filename", "mediaType"),
        Dialect::V03JsonRpc => (keys[1], "name", "mimeType"),
        Dialect::V03Rest => (keys[2], "name", "mimeType"),
    };
    let mut file = Map::new();
    file.insert(key.to_owned(), content.into());
    for (key, value) in [(name_key, name), (mime_key, mime)] {
        if let Some(value) = value {
            file.insert(key.to_owned(), value.as_str().into());
        }
    }
    match dialect {
        Dialect::V1 => file.into(),
        Dialect::V03JsonRpc => json!({ "kind": "file", "file": file }),
        Dialect::V03Rest => json!({ "file": file }),
    }
}

/// Joins adjacent texts that are chunks of one. Agents append each chunk to an artifact as a part of its own.
///
/// A chunk begins or ends within a line, so white space at an edge tells it from a paragraph.
pub(super) fn join_chunks(parts: Vec<Part>) -> Vec<Part> {
    let has_edge = |part: &Part| {
        part.text()
            .is_some_and(|text| text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace))
    };
    if !parts.iter().any(has_edge) {
        return parts;
    }
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        let rest = match joined.last_mut() {
            Some(last) => last.append(part),
            None => Some(part),
        };
        joined.extend(rest);
    }
    joined
}

/// Texts without anything between them, to compare what was streamed with what came as a whole.
pub(super) fn bare_text(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::text).collect()
}

/// Text parts, each on lines of its own.
pub(super) fn joined_text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(Part::text).collect();
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
    fn parts_round_trip_in_every_dialect() {
        for dialect in Dialect::ALL {
            for part in all() {
                assert_eq!(Part::from_json(&part.to_json(dialect), dialect), part, "{dialect:?}");
            }
        }
    }

    #[test]
    fn field_names_depend_on_the_dialect() {
        let [text, file, _, link, _] = all();
        assert_eq!(text.to_json(Dialect::V03JsonRpc), json!({"kind": "text", "text": "hi"}));
        let one = json!({"raw": "AP8+", "filename": "a.bin", "mediaType": "application/x"});
        assert_eq!(file.to_json(Dialect::V1), one);
        let inner =
            json!({"fileWithUri": "https://a.example/x", "name": "a.bin", "mimeType": "application/x"});
        assert_eq!(link.to_json(Dialect::V03Rest), json!({ "file": inner }));
    }

    #[test]
    fn v03_rest_encodes_files_twice_and_reads_both_encodings() {
        let [_, file, ..] = all();
        let Part::File { bytes, .. } = &file else { panic!("no file") };
        assert_eq!(file.to_json(Dialect::V03Rest)["file"]["fileWithBytes"], BASE64.encode("AP8+"));
        let once = json!({"file": {"fileWithBytes": "AP8+", "name": "a.bin", "mimeType": "application/x"}});
        assert_eq!(Part::from_json(&once, Dialect::V03Rest), file, "{bytes:?}");
    }

    #[test]
    fn text_with_a_file_name_is_a_file_in_version_1() {
        let raw = json!({"text": "a,b\n", "filename": "a.csv", "mediaType": "text/csv"});
        let part = Part::from_json(&raw, Dialect::V1);
        assert_eq!((part.is_text(), part.text(), part.summary()), (false, Some("a,b\n"), "a,b\n".to_owned()));
        assert_eq!(part.to_json(Dialect::V1), raw);
        assert_eq!(part.to_json(Dialect::V03Rest), json!({"text": "a,b\n"}));
        let chunks = vec![part.clone(), part.clone(), Part::Text("c".to_owned())];
        let joined = join_chunks(chunks);
        assert_eq!((joined.len(), joined[0].text()), (2, Some("a,b\na,b\n")));
        assert!(Part::from_json(&json!({"text": "x", "filename": ""}), Dialect::V1).is_text());
    }

    #[test]
    fn unknown_part_is_kept_as_sent() {
        for raw in [json!({"hologram": 1}), json!({"raw": "!"}), json!(7), json!({"file": []})] {
            let part = Part::from_json(&raw, Dialect::V1);
            assert_eq!(part, Part::Other(raw.clone()));
            assert_eq!(part.to_json(Dialect::V1), raw);
        }
        let unpadded = json!({"raw": "_-8"});
        let file = Part::File { bytes: vec![255, 239], name: None, mime: None };
        assert_eq!(Part::from_json(&unpadded, Dialect::V1), file);
    }
}
