//! Prompt templates: `{{task.id}}` and friends (config §1). Knows no files.

use crate::config::TaskSpec;

/// A template names something that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// An unknown name between the braces.
    #[error(
        "line {line}: {{{{{name}}}}} is not known; use task.id, task.title, task.body, task.claims, stage or worker"
    )]
    UnknownName {
        /// 1-based.
        line: usize,
        /// As written.
        name: String,
    },
    /// `{{` without `}}`.
    #[error("line {line}: \"{{{{\" has no closing \"}}}}\"")]
    Unclosed {
        /// 1-based.
        line: usize,
    },
}

/// Fills a template in.
///
/// # Errors
/// [`PromptError`] with the line of the first unknown name.
pub fn render(
    template: &str,
    task: &TaskSpec,
    stage: &str,
    worker: u32,
) -> Result<String, PromptError> {
    expand(template, &|name| match name {
        "task.id" => Some(task.id.to_string()),
        "task.title" => Some(task.title.clone()),
        "task.body" => Some(task.body.clone()),
        "task.claims" => Some(
            task.claims
                .iter()
                .map(|c| c.as_str().to_owned())
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        "stage" => Some(stage.to_owned()),
        "worker" => Some(worker.to_string()),
        _ => None,
    })
}

/// Checks a template without a task, at start.
///
/// # Errors
/// As [`render`].
pub fn check_template(template: &str) -> Result<(), PromptError> {
    expand(template, &|name| {
        [
            "task.id",
            "task.title",
            "task.body",
            "task.claims",
            "stage",
            "worker",
        ]
        .contains(&name)
        .then(String::new)
    })
    .map(|_| ())
}

fn expand(
    template: &str,
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Result<String, PromptError> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let line = template.len() - after.len();
        let line = template
            .get(..line)
            .unwrap_or_default()
            .matches('\n')
            .count()
            + 1;
        let (name, tail) = after
            .split_once("}}")
            .ok_or(PromptError::Unclosed { line })?;
        let name = name.trim();
        out.push_str(&value_of(name).ok_or_else(|| PromptError::UnknownName {
            line,
            name: name.to_owned(),
        })?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}
