//! Lines of columns, such as `HOST:PORT:USER:SECRET`, and the entries of other sets that a line is for.
//!
//! A colon ends a column, a backslash takes the next sign as it is, and `*` alone stands for every value.

use crate::tool::target::entries::Entry;
use crate::tool::target::identity::IdentityField;

/// The columns of a line, with no text for a `*`. A comment has no columns.
pub(super) fn columns(line: &str) -> Option<Vec<Option<String>>> {
    let line = line.trim_end_matches(['\r', '\n']);
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let mut columns = Vec::new();
    let (mut plain, mut written) = (String::new(), String::new());
    let mut chars = line.chars();
    loop {
        match chars.next() {
            Some('\\') => {
                written.push('\\');
                plain.extend(chars.next());
            }
            Some(c) if c != ':' => {
                written.push(c);
                plain.push(c);
            }
            end => {
                let text = std::mem::take(&mut plain);
                columns.push((std::mem::take(&mut written) != "*").then_some(text));
                if end.is_none() {
                    return Some(columns);
                }
            }
        }
    }
}

/// Whether a line is for an entry: each column has a value of the field that is compared with it. An entry without the field
/// may have any value.
pub(super) fn is_for(columns: &[Option<String>], fields: &[String], entry: &mut Entry) -> bool {
    fields.iter().zip(columns).all(|(field, text)| {
        let Some(text) = text else { return true };
        let field = IdentityField::parse(field);
        let values = field.alternatives().filter_map(|name| entry.field(name));
        let values: Vec<String> = values.flat_map(|value| field.elements(value)).collect();
        let (values, text) = (field.known(values), field.known(vec![text.clone()]));
        values.is_empty() || values.iter().any(|value| text.contains(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_is_read_with_its_escapes() {
        let texts = |line: &str| {
            let columns = columns(line)?;
            Some(columns.into_iter().map(|text| text.unwrap_or("ANY".to_owned())).collect::<Vec<_>>())
        };
        let of = |texts: &[&str]| Some(texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(texts("h:1:*:u:s"), of(&["h", "1", "ANY", "u", "s"]));
        assert_eq!(texts("\\:\\:1:*:a\\\\b\r\n"), of(&["::1", "ANY", "a\\b"]));
        assert_eq!(texts("\\*:**:\\h"), of(&["*", "**", "h"]));
        assert_eq!(texts("h::"), of(&["h", "", ""]));
        assert_eq!(texts("h\\"), of(&["h"]));
        assert_eq!(texts("# h:1"), None);
        assert_eq!(texts("\n"), None);
    }
}
