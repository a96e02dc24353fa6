//! Fuzz targets: messages of an MCP client, and the arguments of its tool calls.

use rmcp::model::{ClientJsonRpcMessage, JsonObject};
use serde_json::Value;

use super::arguments::{BaseFlags, ToolCaller, invocation};
use super::tools::TOOLS;

/// A line of a client: parsed as the transport parses it.
pub fn mcp_frame(bytes: &[u8]) {
    let Ok(value) = sessile::json::from_slice::<Value>(bytes.trim_ascii()) else { return };
    let messages = match value {
        Value::Array(messages) => messages,
        message => vec![message],
    };
    for message in messages {
        if let Ok(message) = serde_json::from_value::<ClientJsonRpcMessage>(message) {
            assert!(serde_json::to_value(&message).is_ok());
        }
    }
}

/// Arguments for every tool. A client's value never becomes a flag.
pub fn mcp_arguments(bytes: &[u8]) {
    let Ok(given) = sessile::json::from_slice::<JsonObject>(bytes) else { return };
    let flags: Vec<&str> =
        given.values().filter_map(Value::as_str).filter(|text| text.starts_with('-')).collect();
    for tool in TOOLS {
        let caller = ToolCaller { client: Some("fuzz"), session_exists: bytes.len().is_multiple_of(2) };
        match invocation(tool, &given, &BaseFlags::default(), caller) {
            Ok(call) => {
                let before = call.args.iter().take_while(|word| *word != "--");
                let taken: Vec<&String> = before.filter(|word| flags.contains(&word.as_str())).collect();
                let always = |word: &&&String| tool.always.contains(&word.as_str());
                assert!(taken.iter().all(|word| always(&word)), "{}: {taken:?} became flags", tool.name);
            }
            Err(wrong) => assert!(wrong.message.len() < 4_096, "{}", wrong.message),
        }
    }
}
