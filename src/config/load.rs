//! Reads the files of the precedence list and resolves them. The only part of `config` that opens
//! configuration files.

use super::env::{Environment, kill_switch};
use super::merge::Merged;
use super::model::Config;
use super::place::{ConfigError, FileLayer, Problem};
use super::resolve::resolve;
use super::show::ShownValue;
use std::path::{Path, PathBuf};

/// The project's file.
pub const PROJECT_FILE: &str = "flockd.toml";
/// The layer of this machine, outside git.
pub const LOCAL_FILE: &str = "flockd.local.toml";

/// Everything a configuration is made from.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// The project's root, absolute: relative paths in any layer start here.
    pub root: PathBuf,
    /// The user's file, when there may be one.
    pub user_file: Option<PathBuf>,
    /// The process's environment.
    pub environment: Environment,
    /// Command-line values, in order; a later one beats an earlier one.
    pub flags: Vec<FlagValue>,
}

/// One value from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagValue {
    /// As the user knows it: `-m`.
    pub flag: String,
    /// The dotted key: `loop.global_concurrency`.
    pub key: String,
    /// Its text.
    pub value: String,
}

/// A configuration with the story of every value.
#[derive(Debug)]
pub struct Loaded {
    /// The resolved values.
    pub config: Config,
    /// What was ignored or adjusted, for people.
    pub warnings: Vec<Problem>,
    merged: Merged,
}

impl Loaded {
    /// Every value with its place, in the order of the keys.
    #[must_use]
    pub fn values(&self) -> Vec<ShownValue> {
        super::show::values(&self.merged)
    }
}

impl LoadRequest {
    /// For a project, with this process's environment and no flags.
    #[must_use]
    pub fn of_process(root: &Path) -> Self {
        let environment: Environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            root: root.to_owned(),
            user_file: user_file(&environment),
            environment,
            flags: Vec::new(),
        }
    }
}

/// `$XDG_CONFIG_HOME/flockd/config.toml`, else `~/.config/flockd/config.toml`.
fn user_file(environment: &Environment) -> Option<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|v| Path::new(v).is_absolute());
    let folder = match set("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(set("HOME")?).join(".config"),
    };
    Some(folder.join("flockd/config.toml"))
}

/// Reads, merges, checks.
///
/// # Errors
/// [`ConfigError::Invalid`] with every problem of every file and flag; [`ConfigError::Read`] when a
/// file is there and cannot be read. A missing file is an empty one.
pub fn load(request: &LoadRequest) -> Result<Loaded, ConfigError> {
    let mut merged = Merged::builtin();
    if let Some(file) = &request.user_file {
        read_layer(&mut merged, FileLayer::User, file, file)?;
    }
    for (layer, name) in [
        (FileLayer::Project, PROJECT_FILE),
        (FileLayer::Local, LOCAL_FILE),
    ] {
        read_layer(
            &mut merged,
            layer,
            &request.root.join(name),
            Path::new(name),
        )?;
    }
    merged.environment(&request.environment);
    for flag in &request.flags {
        merged.flag(&flag.flag, &flag.key, &flag.value);
    }
    let config = resolve(
        &mut merged,
        &request.root,
        kill_switch(&request.environment),
    );
    if !merged.problems.is_empty() {
        return Err(ConfigError::Invalid(merged.problems));
    }
    let warnings = std::mem::take(&mut merged.warnings);
    Ok(Loaded {
        config,
        warnings,
        merged,
    })
}

fn read_layer(
    merged: &mut Merged,
    layer: FileLayer,
    file: &Path,
    shown: &Path,
) -> Result<(), ConfigError> {
    match std::fs::read_to_string(file) {
        Ok(text) => {
            merged.file(layer, shown, &text);
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ConfigError::Read {
            file: shown.to_owned(),
            source,
        }),
    }
}

/// The state directory even when the rest of the configuration is broken: `stop` and `estop` must
/// find a loop whose files somebody is editing.
#[must_use]
pub fn state_dir_of(request: &LoadRequest) -> PathBuf {
    let mut merged = Merged::builtin();
    for (layer, name) in [
        (FileLayer::Project, PROJECT_FILE),
        (FileLayer::Local, LOCAL_FILE),
    ] {
        let file = request.root.join(name);
        // An unreadable layer is like a missing one here: `load` is what reports it.
        let _ = read_layer(&mut merged, layer, &file, Path::new(name));
    }
    merged.environment(&request.environment);
    for flag in &request.flags {
        merged.flag(&flag.flag, &flag.key, &flag.value);
    }
    resolve(&mut merged, &request.root, false).state_dir
}
