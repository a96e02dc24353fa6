//! Lines on standard error with `--output json`.

use serde::{Deserialize, Serialize};
use sessile::{ReportBody, Warning};

/// A line of JSON on standard error. The MCP server reads the lines that its calls of the program print.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StderrLine {
    /// Failure of the call.
    Error(ReportBody),
    /// Condition that does not fail the call.
    Warning(Warning),
    /// Cursor of the next page of an agent's list.
    NextCursor(String),
    /// Note beside the result.
    Note(String),
}

impl StderrLine {
    /// Parses a line. Commands that the program runs print lines of their own, which are not of this form.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        sessile::json::from_str(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use sessile::error::{Diagnostic, GuardError};
    use sessile::{App, Code, Report};

    use super::*;

    #[test]
    fn line_is_parsed_as_it_was_printed() {
        let app = App::new("sessile");
        let error: &dyn Diagnostic = &GuardError::ApprovalRequired("prod".into());
        let line = Report::of(error, &app).to_json().to_string();
        match StderrLine::parse(&line) {
            Some(StderrLine::Error(body)) => {
                assert_eq!(body.code, Code::GuardApproval.as_str());
                assert_eq!(body.details.context.as_deref(), Some("prod"));
                assert_eq!(serde_json::to_string(&StderrLine::Error(body)).unwrap(), line);
            }
            other => panic!("{other:?}"),
        }
        let note = serde_json::to_string(&StderrLine::Note("hi".into())).unwrap();
        assert_eq!(note, r#"{"note":"hi"}"#);
        assert!(StderrLine::parse("plain text").is_none());
    }
}
