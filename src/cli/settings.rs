//! `config show` and `config schema`.

use super::context::Context;
use super::failure::Outcome;
use super::output;
use clap::Subcommand;
use std::io::Write as _;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Every value and where it came from
    Show,
    /// The JSON Schema of flockd.toml
    Schema,
}

/// Prints every value with its source.
pub(super) fn show(context: &Context) -> Outcome {
    let values = context.load()?.values();
    if context.json {
        output::json(&values)?;
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = values
        .into_iter()
        .map(|shown| vec![shown.key, shown.value.to_string(), shown.source.to_string()])
        .collect();
    let mut out = output::stdout();
    output::table(&mut out, &["KEY", "VALUE", "SOURCE"], &rows)?;
    out.flush()?;
    Ok(0)
}

/// Prints the JSON Schema.
pub(super) fn schema() -> Outcome {
    let text = serde_json::to_string_pretty(&crate::config::schema())?;
    output::line(&text)?;
    Ok(0)
}
