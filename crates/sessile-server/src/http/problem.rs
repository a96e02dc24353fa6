//! Problems: failures of requests as `application/problem+json`, with the codes of the command line.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sessile::Code;
use sessile_wire::service::{ProblemDetails, ProblemReason};

use crate::account::TokenScope;
use crate::change::Refusal;
use crate::clock::now_ms;
use crate::ids::Position;
use crate::store::ServiceStoreError;
use crate::upstream::UpstreamError;
use crate::users::UserError;

/// Failure of a request. The cause is for the operator's log only.
#[derive(Debug)]
pub(crate) struct ApiProblem {
    status: StatusCode,
    code: Code,
    detail: String,
    retryable: bool,
    retry_after_ms: Option<i64>,
    revision: Option<i64>,
    reason: Option<ProblemReason>,
    /// Challenge of a 401 or 403. Boxed, for every handler returns a problem and few have one.
    authenticate: Option<Box<HeaderValue>>,
    cause: Option<String>,
}

/// Cause of a failure, for its log line only.
#[derive(Clone, Debug)]
pub(crate) struct ProblemCause(pub(crate) String);

/// Code of a failure, for its log line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProblemCode(pub(crate) Code);

impl ApiProblem {
    pub(crate) fn new(status: StatusCode, code: Code, detail: impl Into<String>) -> Self {
        ApiProblem {
            status,
            code,
            detail: detail.into(),
            retryable: code.is_retryable(),
            retry_after_ms: None,
            revision: None,
            reason: None,
            authenticate: None,
            cause: None,
        }
    }

    /// The request is not one: 400.
    pub(crate) fn usage(detail: impl Into<String>) -> Self {
        ApiProblem::new(StatusCode::BAD_REQUEST, Code::Usage, detail)
    }

    /// A reply was requested, and no upstream is configured: 400.
    pub(crate) fn no_upstream() -> Self {
        let mut problem = ApiProblem::usage("the service has no upstream and cannot write replies");
        problem.reason = Some(ProblemReason::NoUpstream);
        problem
    }

    /// Invalid request: 400.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        ApiProblem::new(StatusCode::BAD_REQUEST, Code::InvalidValue, detail)
    }

    /// More than is taken: 413.
    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, Code::InvalidValue, detail)
    }

    /// Session that the caller cannot access. The problem is the same as for one that does not exist.
    pub(crate) fn no_session() -> Self {
        ApiProblem::new(StatusCode::NOT_FOUND, Code::SessionNotFound, "session not found")
    }

    pub(crate) fn no_entry() -> Self {
        ApiProblem::new(StatusCode::NOT_FOUND, Code::EntryNotFound, "key not found")
    }

    /// Missing or invalid token: 401. The response does not state which.
    pub(crate) fn unauthenticated() -> Self {
        let detail = "valid token required: `Authorization: Bearer sst_...`";
        let mut problem = ApiProblem::new(StatusCode::UNAUTHORIZED, Code::CredentialRejected, detail);
        problem.authenticate = Some(Box::new(HeaderValue::from_static("Bearer realm=\"sessile\"")));
        problem
    }

    /// The token does not allow this: 403.
    pub(crate) fn out_of_scope(scope: TokenScope) -> Self {
        let scope = scope.as_str();
        let detail = format!("the token lacks the scope `{scope}`");
        let mut problem = ApiProblem::new(StatusCode::FORBIDDEN, Code::CredentialRejected, detail);
        let challenge = format!("Bearer realm=\"sessile\", error=\"insufficient_scope\", scope=\"{scope}\"");
        problem.authenticate = HeaderValue::from_str(&challenge).ok().map(Box::new);
        problem
    }

    /// Too many at once or in a row: 429.
    pub(crate) fn rate_limited(detail: &str, after_ms: i64) -> Self {
        ApiProblem::new(StatusCode::TOO_MANY_REQUESTS, Code::RateLimited, detail).retry_after(after_ms)
    }

    /// A timeout: 408.
    pub(crate) fn timed_out(detail: &str) -> Self {
        let mut problem = ApiProblem::new(StatusCode::REQUEST_TIMEOUT, Code::TimedOut, detail);
        problem.retryable = true;
        problem
    }

    /// The service is shutting down: 503.
    pub(crate) fn closing_down() -> Self {
        let detail = "the service is shutting down";
        ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unreachable, detail).retry_after(1000)
    }

    /// An internal error: 500.
    pub(crate) fn internal(cause: impl Into<String>) -> Self {
        let mut problem = ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Store, "the store failed");
        problem.cause = Some(cause.into());
        problem
    }

    /// An invalid reply of the upstream: 502.
    pub(crate) fn unusable(cause: impl Into<String>) -> Self {
        let detail = "invalid response from the upstream; nothing was appended";
        let mut problem = ApiProblem::new(StatusCode::BAD_GATEWAY, Code::AgentRefused, detail);
        problem.cause = Some(cause.into());
        problem
    }

    pub(crate) fn retry_after(mut self, after_ms: i64) -> Self {
        self.retryable = true;
        // Zero would make clients retry in a busy loop.
        self.retry_after_ms = Some(after_ms.max(1));
        self
    }

    /// Code of the failure.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// Whether the store could not be reached.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.code == Code::Unreachable
    }

    /// A precondition of the request's head failed, not one of its body: 412.
    pub(crate) fn for_precondition(mut self, was_given: bool) -> Self {
        if was_given && self.code == Code::RevisionConflict {
            self.status = StatusCode::PRECONDITION_FAILED;
        }
        self
    }
}

impl From<ServiceStoreError> for ApiProblem {
    fn from(error: ServiceStoreError) -> Self {
        match error {
            ServiceStoreError::Unavailable(cause) => {
                let detail = "the store is unreachable; requests with an idempotency key are safe to retry";
                let mut problem = ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unreachable, detail);
                problem.cause = Some(cause);
                problem.retry_after(1000)
            }
            ServiceStoreError::NoPassword | ServiceStoreError::TooNew { .. } => {
                ApiProblem::internal(error.to_string())
            }
            ServiceStoreError::Failed(cause)
            | ServiceStoreError::Refused(cause)
            | ServiceStoreError::Unfit(cause) => ApiProblem::internal(cause),
        }
    }
}

impl From<UserError> for ApiProblem {
    fn from(error: UserError) -> Self {
        match error {
            UserError::Store(error) => error.into(),
            other => ApiProblem::internal(other.to_string()),
        }
    }
}

/// The upstream's words are not forwarded, because they may repeat the key.
impl From<UpstreamError> for ApiProblem {
    fn from(error: UpstreamError) -> Self {
        let (status, code, detail, is_transient, cause) = match error {
            UpstreamError::Unusable(cause) => return ApiProblem::unusable(cause),
            UpstreamError::Unreachable(cause) => {
                let detail =
                    "the upstream is unreachable or closed the connection; nothing was appended".to_owned();
                (StatusCode::BAD_GATEWAY, Code::Unreachable, detail, true, cause)
            }
            UpstreamError::TimedOut => {
                let detail = "the upstream timed out; nothing was appended".to_owned();
                (StatusCode::GATEWAY_TIMEOUT, Code::TimedOut, detail, true, "timed out".to_owned())
            }
            UpstreamError::Declined { detail: cause, is_transient, .. } => {
                let detail = "the upstream agent failed; nothing was appended".to_owned();
                (StatusCode::BAD_GATEWAY, Code::AgentRefused, detail, is_transient, cause)
            }
            UpstreamError::Refused { status, detail: cause } => {
                let detail = format!("the upstream returned status {status}; nothing was appended");
                let is_transient = status == 429 || status >= 500;
                (StatusCode::BAD_GATEWAY, Code::AgentRefused, detail, is_transient, cause)
            }
        };
        let mut problem = ApiProblem::new(status, code, detail);
        (problem.retryable, problem.cause) = (is_transient, Some(cause));
        problem
    }
}

impl From<Refusal> for ApiProblem {
    fn from(refusal: Refusal) -> Self {
        let conflict = |code, detail: String| ApiProblem::new(StatusCode::CONFLICT, code, detail);
        let lost = |number: i64| {
            let detail =
                format!("fencing token {number} is no longer valid: the lease expired or was taken over");
            conflict(Code::LockLost, detail)
        };
        match refusal {
            // The same answer for a missing session and for another user's, so that ids cannot be tried out.
            Refusal::NoSession | Refusal::NoAccount | Refusal::AccountExists => ApiProblem::no_session(),
            Refusal::SessionOver => {
                ApiProblem::new(StatusCode::GONE, Code::SessionExpired, "the session has ended or expired")
            }
            Refusal::NameTaken => {
                conflict(Code::SessionExists, "a live session with this name already exists".to_owned())
            }
            Refusal::Changed { revision } => {
                let detail = format!("revision conflict: the current revision is {revision}");
                ApiProblem { revision: Some(revision), ..conflict(Code::RevisionConflict, detail) }
            }
            Refusal::Held { expires_ms, .. } => {
                let left = (expires_ms - now_ms()).max(1);
                conflict(Code::LockHeld, "the lock or turn is held or awaited by another holder".to_owned())
                    .retry_after(left)
            }
            Refusal::Lost { token } => lost(token.get()),
            Refusal::PlaceLost { place } => lost(place.map_or(0, Position::get)),
            Refusal::TooManySettings | Refusal::NoMessage { .. } => ApiProblem::invalid(refusal.to_string()),
            Refusal::KeyReused => ApiProblem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::InvalidValue,
                "the idempotency key was used for another request",
            ),
        }
    }
}

impl ApiProblem {
    /// Title: the meaning of the code, or of the status where the code covers several.
    fn title(&self) -> &'static str {
        match (self.code, self.status) {
            (Code::Usage, StatusCode::NOT_FOUND) => "Path not found.",
            (Code::Usage, StatusCode::METHOD_NOT_ALLOWED) => "Method not allowed.",
            (Code::Usage, StatusCode::NOT_ACCEPTABLE) => "Not acceptable.",
            (Code::Usage, StatusCode::UNSUPPORTED_MEDIA_TYPE) => "Unsupported media type.",
            (code, _) => code.about(),
        }
    }

    /// Body of the response.
    pub(crate) fn details(&self) -> ProblemDetails {
        ProblemDetails {
            kind: format!("urn:sessile:error:{}", self.code.as_str()),
            title: self.title().to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            code: self.code.as_str().to_owned(),
            retryable: self.retryable,
            retry_after_ms: self.retry_after_ms,
            revision: self.revision,
            reason: self.reason,
        }
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.details()).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ProblemDetails::MEDIA_TYPE));
        if let Some(after) = self.retry_after_ms {
            // In whole seconds, and never too early.
            let seconds = after.saturating_add(999) / 1000;
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.authenticate {
            headers.insert(header::WWW_AUTHENTICATE, *challenge);
        }
        response.extensions_mut().insert(ProblemCode(self.code));
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(ProblemCause(cause));
        }
        response
    }
}
