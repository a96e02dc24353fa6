//! Requests with placeholders.

use ureq::http::Method;

use super::service::User;

/// Placeholders.
const PLACEHOLDERS: &[&str] = &["user", "session", "message", "turn"];

/// Escaping of a filled placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// No escaping.
    Nothing,
    /// As within a text of JSON.
    Json,
    /// As in an address or a form.
    Percent,
}

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(String);

impl Template {
    /// Takes a text, unless a placeholder in it is none; then which.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        for (at, _) in text.match_indices('{') {
            let inner = text[at + 1..].split('}').next().unwrap_or_default();
            let looks_so = !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_lowercase());
            // Where no brace closes, it is no placeholder.
            let is_closed = text[at + 1..].len() > inner.len();
            if looks_so && is_closed && !PLACEHOLDERS.contains(&inner) {
                return Err(format!("{{{inner}}}"));
            }
        }
        Ok(Template(text.to_owned()))
    }

    /// Whether it names the user.
    pub(crate) fn names_user(&self) -> bool {
        self.has("user") || self.has("session")
    }

    /// Whether a placeholder is in it.
    pub(crate) fn has(&self, placeholder: &str) -> bool {
        self.0.contains(&format!("{{{placeholder}}}"))
    }

    /// Text with its placeholders filled in once.
    pub(crate) fn filled(&self, user: &User, message: &str, escape: Escape) -> String {
        let (mut out, mut rest) = (String::with_capacity(self.0.len() + message.len()), self.0.as_str());
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let name = PLACEHOLDERS
                .iter()
                .find(|name| rest[1..].strip_prefix(**name).is_some_and(|rest| rest.starts_with('}')));
            // JSON bodies are full of braces that are not placeholders.
            let Some(name) = name else {
                out.push('{');
                rest = &rest[1..];
                continue;
            };
            match *name {
                "user" => put(&user.name, escape, &mut out),
                "session" => put(&user.session, escape, &mut out),
                "message" => put(message, escape, &mut out),
                _ => put(&user.turn.to_string(), escape, &mut out),
            }
            rest = &rest[name.len() + 2..];
        }
        out.push_str(rest);
        out
    }
}

fn put(text: &str, escape: Escape, out: &mut String) {
    match escape {
        Escape::Nothing => out.push_str(text),
        Escape::Json => {
            let quoted = serde_json::Value::from(text).to_string();
            // The template has the quotes.
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
        Escape::Percent => out.push_str(&sessile_wire::percent::encode(text)),
    }
}

/// A method and a path with placeholders: `POST /chat`.
#[derive(Clone, Debug)]
pub(crate) struct RequestLine {
    pub(crate) method: Method,
    pub(crate) path: Template,
}

impl RequestLine {
    /// Parses a template; the error names the problem.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (method, path) = text.trim().split_once(' ').ok_or("METHOD /PATH")?;
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let method = Method::from_bytes(method.as_bytes()).ok().filter(|_| is_method);
        let path = path.trim();
        if !path.starts_with('/') {
            return Err("METHOD /PATH".to_owned());
        }
        let path = Template::parse(path)
            .map_err(|_| "a path whose placeholders are {user}, {session}, {message} and {turn}")?;
        Ok(RequestLine { method: method.ok_or("a method such as POST, in capitals")?, path })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user() -> User {
        User { name: "ann".to_owned(), session: "s 1".to_owned(), turn: 7, ..User::default() }
    }

    #[test]
    fn placeholders_are_filled_in_and_nothing_else() {
        let template =
            Template::parse(r#"{"user": "{user}", "n": {turn}, "m": "{message}", "x": {"{": 1}}"#).unwrap();
        let filled = template.filled(&user(), "a \"b\"\n{user}", Escape::Json);
        assert_eq!(filled, r#"{"user": "ann", "n": 7, "m": "a \"b\"\n{user}", "x": {"{": 1}}"#);
        let path = Template::parse("/s/{session}/?m={message}").unwrap();
        assert_eq!(path.filled(&user(), "a&b/c", Escape::Percent), "/s/s%201/?m=a%26b%2Fc");
        assert!(template.names_user() && !Template::parse("{message}").unwrap().names_user());
    }

    #[test]
    fn misspelt_placeholder_is_refused() {
        assert_eq!(Template::parse("{mesage}").unwrap_err(), "{mesage}");
        for text in ["{", "{}", "{\"a\": {\"b\": 1}}", "{A}", "{user", "}{"] {
            assert!(Template::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_request_is_a_method_and_a_path() {
        let line = RequestLine::parse("POST /chat/{session}").unwrap();
        assert_eq!(
            (line.method, line.path.filled(&user(), "", Escape::Percent)),
            (Method::POST, "/chat/s%201".into())
        );
        for text in
            ["POST", "/chat", "post /chat", "POST chat", "POST http://x.example/", "G\u{e9}T /", "GET /{who}"]
        {
            assert!(RequestLine::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn message_text_never_breaks_the_json(message in "\\PC*|[\\x00-\\x7f]*") {
            let body = Template::parse(r#"{"m": "{message}"}"#).unwrap().filled(&user(), &message, Escape::Json);
            let read: serde_json::Value = serde_json::from_str(&body).unwrap();
            prop_assert_eq!(read["m"].as_str(), Some(message.as_str()));
        }
    }
}
