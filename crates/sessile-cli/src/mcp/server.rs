//! MCP server: the tools, resources and prompts on offer, and the path of a call.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CompleteRequestParams, CompleteResult,
    ContentBlock, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use sessile::text::{quoted, shortened};
use sessile::{Code, ReportBody, State, StateArgs};
use tokio::sync::{Mutex, watch};

use super::approval::{self, ApprovalOutcome, GuardedCall};
use super::arguments::{BaseFlags, ToolCaller, invocation};
use super::file_changes::FileChanges;
use super::invocation::{CallOutcome, GRACE, Invocation};
use super::lanes::CallLanes;
use super::questions::{Asker, OpenQuestions, can_ask};
use super::reply::{self, Reply, captured, refused};
use super::run_consent::{self, RunGrants};
use super::state_access::{StateLocation, with_state};
use super::subscriptions::{self, Subscriptions};
use super::tool::{Tool, USUAL};
use super::tools::TOOLS;
use super::{in_process, instructions, progress, prompts, resources};
use crate::file_watch::WatchedDirs;

/// Grace period of calls at shutdown. Clients kill a server that does not end soon.
pub(super) const PARTING: Duration = Duration::from_millis(1500);

/// Tools that the server may offer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolAccess {
    /// Whether commands may be run without asking.
    pub(crate) run: bool,
    /// Whether only read-only tools are offered.
    pub(crate) read_only: bool,
}

/// Tools that a client is offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    access: ToolAccess,
    /// Whether the client can ask its person.
    can_ask: bool,
}

impl Offer {
    fn includes(self, tool: &Tool) -> bool {
        if tool.runs_commands() {
            self.access.run || (self.can_ask && !self.access.read_only)
        } else {
            !self.access.read_only || tool.only_reads()
        }
    }

    /// Whether a tool of this name is offered.
    pub(super) fn has(self, name: &str) -> bool {
        TOOLS.iter().any(|tool| tool.name == name && self.includes(tool))
    }

    /// Whether the server asks for consent before a command runs.
    pub(super) fn asks_to_run(self) -> bool {
        !self.access.run
    }

    /// Reason why no tool that runs commands is offered, for the instructions.
    pub(super) fn why_no_commands(self) -> &'static str {
        match self.access.read_only {
            true => " The server was started with --read-only: it changes nothing and runs no commands.",
            false => {
                " The server runs no commands, because the client cannot ask its person (elicitation). A person can start \
                 the server with --allow-run."
            }
        }
    }

    fn find(self, name: &str) -> Result<&'static Tool, ErrorData> {
        let wrong = |why: String| ErrorData::invalid_params(why, None);
        match TOOLS.iter().find(|tool| tool.name == name) {
            // A client that cannot ask gets the reason as the tool's error, which models read.
            Some(tool) if self.includes(tool) || (tool.runs_commands() && !self.access.read_only) => Ok(tool),
            Some(_) => Err(wrong(format!("tool {name} is off: the server was started with --read-only"))),
            None => {
                let near = sessile::names::nearest(name, TOOLS.iter().map(|tool| tool.name));
                let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                let name = quoted(shortened(name, 60));
                Err(wrong(format!("tool {name} not found{meant}")))
            }
        }
    }
}

/// State that all connections of a server share.
#[derive(Debug)]
pub(super) struct ServerState {
    access: ToolAccess,
    base: BaseFlags,
    flags: StateArgs,
    pub(super) lanes: CallLanes,
    /// Whether the server is about to end.
    parting: watch::Receiver<bool>,
    questions: OpenQuestions,
    grants: RunGrants,
    changes: FileChanges,
}

impl ServerState {
    pub(super) fn new(state: &State, access: ToolAccess, parting: watch::Receiver<bool>) -> Self {
        ServerState {
            access,
            base: BaseFlags::of(state),
            flags: state.args().clone(),
            lanes: CallLanes::new(),
            parting,
            questions: OpenQuestions::default(),
            grants: RunGrants::default(),
            changes: FileChanges::new(),
        }
    }

    fn offer(&self, capabilities: Option<ClientCapabilities>) -> Offer {
        Offer { access: self.access, can_ask: can_ask(capabilities) }
    }

    fn location(&self) -> StateLocation {
        StateLocation { flags: self.flags.clone(), directory: None }
    }

    /// Receiver of changes of the state's files.
    pub(super) async fn file_changes(&self) -> watch::Receiver<u64> {
        let dirs = with_state(self.location(), |state| Ok(WatchedDirs::of(state))).await;
        self.changes.subscribe(&dirs.unwrap_or_default())
    }

    /// Output of a command that reads, with the server's configuration and without its session and context.
    pub(super) async fn read_command(&self, mut words: Vec<String>) -> Result<Value, Box<ReportBody>> {
        let command = words.iter().take_while(|word| !word.starts_with("--")).count();
        words.splice(command..command, self.base.reading_flags());
        let invocation = Invocation::reading(words, USUAL);
        let place = self.lanes.read().await.ok_or_else(|| io_report("the server ends"))?;
        let ended =
            in_process::read(&invocation, place).await.map_err(|error| io_report(&error.to_string()))?;
        reply::read_value(&ended)
    }

    async fn instructions(&self, offer: Offer) -> String {
        let told = with_state(self.location(), move |state| Ok(instructions::instructions(state, offer)));
        told.await.unwrap_or_default()
    }

    async fn has_session(&self, session: &str) -> bool {
        let session = session.to_owned();
        let place =
            // Without the server's own session, which may not exist either.
            StateLocation { flags: StateArgs { session: None, ..self.flags.clone() }, directory: None };
        with_state(place, move |state| state.look_up_session(&session).map(drop)).await.is_ok()
    }
}

fn io_report(message: &str) -> Box<ReportBody> {
    Box::new(sessile::Report::new(Code::Io, message).to_body())
}

/// One connection of a client.
#[derive(Clone, Debug)]
pub(super) struct McpConnection {
    shared: Arc<ServerState>,
    subscriptions: Arc<Mutex<Subscriptions>>,
}

impl McpConnection {
    pub(super) fn new(shared: Arc<ServerState>) -> Self {
        McpConnection { shared, subscriptions: Arc::default() }
    }

    fn offer(&self, context: &RequestContext<RoleServer>) -> Offer {
        self.shared.offer(context.client_capabilities())
    }

    /// There when a call is called off, with the time that it has to end.
    async fn called_off(&self, context: &RequestContext<RoleServer>) -> Duration {
        let mut parting = self.shared.parting.clone();
        tokio::select! {
            () = context.ct.cancelled() => GRACE,
            _ = parting.wait_for(|is_parting| *is_parting) => PARTING,
        }
    }

    /// Makes the call; a cancelled one has no result.
    async fn make(
        &self,
        tool: &Tool,
        invocation: &Invocation,
        context: &RequestContext<RoleServer>,
        latest: &watch::Sender<Option<String>>,
    ) -> Option<Reply> {
        let timed_out = || {
            let limit = sessile::duration::short(invocation.limit);
            Reply::Result(refused(Code::TimedOut, format!("{} timed out after {limit}", tool.name)))
        };
        let failed = |error| Reply::Result(refused(Code::Io, format!("cannot call the program: {error}")));
        if tool.reads_in_process()
            && let Some(place) = self.shared.lanes.try_read()
        {
            return tokio::select! {
                read = in_process::read(invocation, place) => {
                    Some(read.map_or_else(failed, |ended| reply::reply(tool, &ended, invocation.page)))
                }
                () = tokio::time::sleep(invocation.limit) => Some(timed_out()),
                _ = self.called_off(context) => None,
            };
        }
        // Each call is a process; a client could otherwise exhaust the machine.
        let _one_of_them = tokio::select! {
            permit = self.shared.lanes.acquire(tool) => permit?,
            _ = self.called_off(context) => return None,
        };
        Some(match invocation.make(self.called_off(context), latest).await {
            Ok(CallOutcome::Ended(ended)) => reply::reply(tool, &ended, invocation.page),
            Ok(CallOutcome::TimedOut(ended)) if tool.runs_commands() => Reply::Result(captured(&ended, true)),
            Ok(CallOutcome::TimedOut(_)) => timed_out(),
            Ok(CallOutcome::CalledOff) => return None,
            Err(error) => failed(error),
        })
    }

    /// Handles a call: arguments, consent, process, and the prompt for an approval that a guard requires.
    async fn answer(
        &self,
        tool: &Tool,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        latest: &watch::Sender<Option<String>>,
    ) -> Result<CallToolResponse, ErrorData> {
        let shared = &*self.shared;
        let client = context.client_info().map(|client| client.name);
        let arguments = request.arguments.clone().unwrap_or_default();
        let caller = ToolCaller {
            client: client.as_deref(),
            session_exists: match shared.base.session_in_question(&arguments) {
                Some(session) => shared.has_session(session).await,
                None => true,
            },
        };
        let invocation = match invocation(tool, &arguments, &shared.base, caller) {
            Ok(invocation) => invocation,
            Err(wrong) => return Ok(refused(wrong.code, wrong.message).into()),
        };
        let client = client.as_deref().unwrap_or("an MCP client");
        let mut asker = Asker::new(&shared.questions, request, context);
        let called_off = || ErrorData::internal_error("the call was called off", None);
        if tool.runs_commands() && self.offer(context).asks_to_run() {
            let consent = tokio::select! {
                consent = run_consent::ask(&shared.grants, &mut asker, client, &arguments) => consent,
                _ = self.called_off(context) => return Err(called_off()),
            };
            if let Err(response) = consent {
                return Ok(response);
            }
        }
        let made = self.make(tool, &invocation, context, latest).await.ok_or_else(called_off)?;
        let (name, mut refusal) = match made {
            Reply::Result(result) => return Ok(result.into()),
            Reply::Guarded { context, refusal } => (context, refusal),
        };
        let approval = GuardedCall {
            context: &name,
            purpose: &format!("{} {}", tool.name, json!(arguments)),
            client,
            // Whoever came here with a command has consent.
            is_run_allowed: tool.runs_commands(),
        };
        let place = StateLocation { flags: shared.flags.clone(), directory: invocation.directory.clone() };
        let asked = tokio::select! {
            asked = approval::ask(&approval, &mut asker, &place) => asked,
            _ = self.called_off(context) => return Err(called_off()),
        };
        match asked {
            ApprovalOutcome::Opened => {
                let made = self.make(tool, &invocation, context, latest).await.ok_or_else(called_off)?;
                Ok(match made {
                    // Asked once only: the guard may have closed again meanwhile.
                    Reply::Result(result) | Reply::Guarded { refusal: result, .. } => result.into(),
                })
            }
            ApprovalOutcome::Ask(question) => Ok((*question).into()),
            ApprovalOutcome::Shut(why) => {
                refusal.content.extend(why.map(ContentBlock::text));
                Ok(refusal.into())
            }
        }
    }
}

impl ServerHandler for McpConnection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("sessile", env!("CARGO_PKG_VERSION")))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let info = self.negotiate_initialize(&request)?;
        let offer = self.shared.offer(Some(request.capabilities));
        Ok(info.with_instructions(self.shared.instructions(offer).await))
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let instructions = self.shared.instructions(self.offer(&context)).await;
        let info = self.get_info().with_instructions(instructions);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offer = self.offer(&context);
        let offered = TOOLS.iter().filter(|tool| offer.includes(tool));
        Ok(ListToolsResult::with_all_items(offered.map(Tool::listed).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.offer(&context).find(&request.name)?;
        let (latest, told) = watch::channel(None);
        tokio::select! {
            answer = self.answer(tool, &request, &context, &latest) => answer,
            never = progress::tell(&context, told) => match never {},
        }
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = page.and_then(|page| page.cursor);
        self.shared.list_resources(cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.shared.read_resource(&request.uri).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        subscriptions::subscribe(&self.shared, &self.subscriptions, &request.uri, context.peer).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        subscriptions::unsubscribe(&self.subscriptions, &request.uri).await;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let known: Vec<String> = uris.filter(|uri| resources::parsed(uri).is_ok()).cloned().collect();
        Some(SubscriptionFilter::builder().resource_subscriptions(known).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        subscriptions::listen(&self.shared, &context).await
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(self.offer(&context))))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.shared, self.offer(&context), &request).await.map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(prompts::complete(&self.shared, &request).await)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method with parameters that do not fit arrives here too.
        const KNOWN: [&str; 6] = [
            "tools/call",
            "tools/list",
            "resources/read",
            "resources/subscribe",
            "prompts/get",
            "completion/complete",
        ];
        if KNOWN.contains(&request.method.as_str()) {
            let message = format!("invalid parameters of {}", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        let method = shortened(&request.method, 60);
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("method {} not found", quoted(method)), None))
    }
}
