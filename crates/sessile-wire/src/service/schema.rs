//! Schema fragments that a derive cannot express.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::limits::{MAX_LABEL_VALUE, MAX_LABELS};

/// Schema of a message body or state value in a request.
#[derive(Debug)]
pub enum AnyValue {}

impl JsonSchema for AnyValue {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Any JSON, up to 256 KiB." })
    }
}

/// Turns the schema of a documented unit enum, a list of constants, into a plain `enum`, which more tools understand.
pub(crate) fn plain_enum(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.remove("oneOf") else { return };
    let names: Vec<&Value> = variants.iter().filter_map(|variant| variant.get("const")).collect();
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), json!(names));
}

/// States the limits of a session's labels.
pub(super) fn label_limits(schema: &mut Schema) {
    schema.insert("maxProperties".to_owned(), json!(MAX_LABELS));
    let value = json!({ "type": "string", "maxLength": MAX_LABEL_VALUE });
    schema.insert("additionalProperties".to_owned(), value);
}
