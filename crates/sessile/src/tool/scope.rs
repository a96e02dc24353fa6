//! Scope of an isolation: its level, and the tools that it covers.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde::Serialize;

use crate::context::Context;
use crate::error::{Result, ToolError};
use crate::state::State;
use crate::tool::plan::Plan;

/// Level of isolation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Variables lead the known tools into the room.
    #[default]
    Env,
    /// The home directory is in the room as well.
    Home,
}

impl Level {
    /// A level by its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "env" => Some(Level::Env),
            "home" => Some(Level::Home),
            _ => None,
        }
    }
}

impl Level {
    /// Name of the level.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Env => "env",
            Level::Home => "home",
        }
    }
}

/// Tools to isolate, and the level.
#[derive(Clone, Debug, Default)]
pub struct IsolationScope {
    /// Level; a room that has a home keeps it unless another level is requested.
    pub level: Level,
    /// Whether the level is requested for this command.
    pub is_level_requested: bool,
    /// Only these tools; all if empty.
    pub only: Vec<String>,
    /// Not these.
    pub except: Vec<String>,
    /// Additional tools, which are isolated only on request.
    pub also: Vec<String>,
}

impl IsolationScope {
    /// The same with every tool called by its own name instead of one of its programs'. A name that no tool has is an
    /// error.
    pub fn resolved(mut self, state: &State) -> Result<Self> {
        for list in [&mut self.only, &mut self.except, &mut self.also] {
            for name in list {
                *name = state.tools().get(name)?.0.name;
            }
        }
        Ok(self)
    }

    /// Level of a session; a moved home stays moved.
    pub(crate) fn level_in(&self, plan: &Plan) -> Level {
        if plan.home.is_some() && !self.is_level_requested { Level::Home } else { self.level }
    }

    /// Fails if a binding takes no effect at the level of the call, or if the command is a tool whose state is too large for the
    /// room. Warns if the command is a tool that the level does not isolate.
    pub(crate) fn check_command(
        &self,
        state: &State,
        plan: &Plan,
        context: Option<&Context>,
        words: &[OsString],
    ) -> Result<()> {
        let level = self.level_in(plan);
        for bound in &plan.bound {
            let uncarried = bound.uncarried.as_ref();
            let Some(uncarried) = uncarried.filter(|key| level == Level::Env || !key.home_level) else {
                continue;
            };
            return Err(ToolError::BindingNotIsolated {
                context: context.map(|context| context.name.to_string()).unwrap_or_default(),
                key: format!("tools.{}.{}", bound.tool, uncarried.key),
                tool: bound.tool.clone(),
                level: level.as_str(),
                needed: uncarried.home_level.then_some(Level::Home.as_str()),
            }
            .into());
        }
        let Some(program) = words.first().map(Path::new).and_then(Path::file_name) else { return Ok(()) };
        let is_command = |programs: &[String]| programs.iter().any(|one| OsStr::new(one) == program);
        for prepared in plan.tools.iter().filter(|prepared| self.isolates(plan, &prepared.tool)) {
            if let Some(oversized) = prepared.oversized.as_ref().filter(|one| is_command(&one.programs)) {
                let (tool, path) = (prepared.tool.clone(), oversized.path.clone());
                return Err(ToolError::StateTooLarge { tool, path }.into());
            }
            let shared = prepared.home_only.as_ref().filter(|one| is_command(&one.programs));
            if let (Some(shared), Level::Env) = (shared, level) {
                state.warn(
                    format!("isolation level {} does not isolate {}", level.as_str(), shared.state),
                    Some(format!("isolate it: pass --isolate {}", Level::Home.as_str())),
                );
            }
        }
        Ok(())
    }

    /// Whether a tool of a plan is isolated: if it is wanted, bound, or has protected targets.
    pub(crate) fn isolates(&self, plan: &Plan, name: &str) -> bool {
        let is_withheld = plan.withheld.as_ref().is_some_and(|withheld| withheld.has_tool(name));
        self.wants(name, false, plan.bound.iter().any(|bound| bound.tool == name)) || is_withheld
    }

    /// Whether a tool is isolated. A bound tool always is.
    pub(crate) fn wants(&self, name: &str, on_request: bool, is_bound: bool) -> bool {
        let named = |list: &[String]| list.iter().any(|listed| listed == name);
        let asked = if self.only.is_empty() { !on_request || named(&self.also) } else { named(&self.only) };
        is_bound || (asked && !named(&self.except))
    }
}
