//! JSON texts that test the limits of a parser.

/// The object key by which serde_json marks an embedded document.
pub const RESERVED_KEY: &str = "$serde_json::private::RawValue";

/// An object with [`RESERVED_KEY`] whose value is a JSON text that has such an object again, so many times. Each text is
/// within the depth limit of serde_json; parsed together, they overflow the stack.
pub fn embedded_documents(levels: usize) -> String {
    let (open, close) = ("[".repeat(124), "]".repeat(124));
    let embed = |text: String| format!("{{\"{RESERVED_KEY}\":{}}}", serde_json::Value::String(text));
    let innermost = format!("{open}{close}");
    embed((1..levels).fold(innermost, |text, _| format!("{open}{}{close}", embed(text))))
}
