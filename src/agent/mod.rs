//! Agents: what to run for a role, and what its output meant. Plans and reads; starts nothing.

mod command;
mod env;
mod prompt;

pub use command::{AgentPlan, Stdin, plan_role, plan_shell, verdict_of};
pub use env::{RunIdentity, child_env};
pub use prompt::{PromptError, check_template, render};
