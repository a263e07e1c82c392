//! What every command needs to know first: the project, the state directory, the configuration.

use super::args::Global;
use super::failure::Failure;
use super::output::say;
use crate::client::{Client, ClientError};
use crate::config::{
    Config, ConfigError, FlagValue, LoadRequest, Loaded, load, project_root, state_dir_of,
};
use std::path::{Path, PathBuf};

/// A project and the options of this command.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) root: PathBuf,
    pub(super) json: bool,
    pub(super) verbose: u8,
    request: LoadRequest,
}

impl Context {
    /// Finds the project of the current folder, or of `-C`.
    ///
    /// Outside a repository a state directory that is named is enough.
    pub(super) fn new(global: &Global) -> Result<Self, Failure> {
        let here = match &global.directory {
            Some(folder) => folder.clone(),
            None => std::env::current_dir()
                .map_err(|e| Failure::invalid(format!("the current folder is gone: {e}")))?,
        };
        let named = global.state_dir.is_some()
            || std::env::var_os("FLOCKD_STATE_DIR").is_some_and(|text| !text.is_empty());
        let root = match project_root(&here) {
            Ok(root) => root,
            Err(error) if !named => return Err(error.into()),
            Err(error) => here.canonicalize().map_err(|_| Failure::from(error))?,
        };
        let mut request = LoadRequest::of_process(&root);
        if let Some(state_dir) = &global.state_dir {
            request.flags.push(flag(
                "--state-dir",
                "state_dir",
                &absolute(&here, state_dir)?,
            ));
        }
        for text in &global.set {
            let Some((key, value)) = text.split_once('=') else {
                return Err(Failure::invalid(format!(
                    "--set {text}: write --set KEY=VALUE"
                )));
            };
            request.flags.push(flag("--set", key.trim(), value));
        }
        Ok(Self {
            root,
            json: global.json,
            verbose: global.verbose,
            request,
        })
    }

    /// Adds values of the command's own flags; they beat `--set`.
    pub(super) fn with_flags(mut self, flags: Vec<FlagValue>) -> Self {
        self.request.flags.extend(flags);
        self
    }

    /// The configuration; warnings are said once, here.
    pub(super) fn load(&self) -> Result<Loaded, Failure> {
        let loaded = load(&self.request)?;
        for warning in &loaded.warnings {
            say(format!("warning: {warning}"));
        }
        Ok(loaded)
    }

    /// The configuration, or what is wrong with it.
    pub(super) fn try_load(&self) -> Result<Loaded, ConfigError> {
        load(&self.request)
    }

    /// The configuration for commands that only look: warnings with `-v` only.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let loaded = load(&self.request)?;
        if self.verbose > 0 {
            for warning in &loaded.warnings {
                say(format!("warning: {warning}"));
            }
        }
        Ok(loaded.config)
    }

    /// The state directory, whatever else is wrong with the configuration.
    pub(super) fn state_dir(&self) -> PathBuf {
        state_dir_of(&self.request)
    }

    /// The daemon, when one runs. One that does not answer is said and counts as none: commands that
    /// look go on with the files.
    pub(super) fn daemon(&self, state_dir: &Path) -> Option<Client> {
        match Client::connect(state_dir) {
            Ok(client) => Some(client),
            Err(ClientError::NoDaemon) => None,
            Err(error) => {
                say(format!("{error}; showing what the files say"));
                None
            }
        }
    }

    /// A path as people know it: relative to the project where it can be.
    pub(super) fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// One value of a flag.
pub(super) fn flag(flag: &str, key: &str, value: &str) -> FlagValue {
    FlagValue {
        flag: flag.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

fn absolute(here: &Path, path: &Path) -> Result<String, Failure> {
    let joined = std::path::absolute(here.join(path))?;
    joined
        .into_os_string()
        .into_string()
        .map_err(|_| Failure::invalid("--state-dir is not UTF-8: use another folder"))
}
