//! The script language: words to steps. Owns the syntax; knows nothing of what a step does.

/// What `fake-agent help` prints.
pub(crate) const HELP: &str = "\
print TEXT · print-raw TEXT (no newline) · eprint TEXT · verdict pass|fail R|blocked R
flood [--stdout BYTES] [--stderr BYTES]   both at once; BYTES may end in k or m
cat                       standard input to standard output
show FILE                 the file's bytes
replay FILE CODE          the same, then exit CODE (negative: die of that signal)
die-mid-line              half a line, then KILL to itself
exit CODE · signal-self N · stop-self · ignore-term · exit-on-term CODE
hang · sleep MS · burn MS (CPU) · hold-until FILE
fork N [STEPS]            N children that run STEPS (words joined by ','; default hang)
setsid-child [STEPS]      one child in a session of its own · setsid (this process)
double-fork [STEPS]       a grandchild in its own session whose parent is gone
sh COMMAND · write PATH TEXT · append PATH TEXT · touch PATH
close-stdin · close-output
print-env [NAME…] · print-fds · print-sigmask · print-cwd · print-ids
count-alive DIR           stands as alive in DIR until it ends; appends how many are to DIR/seen";

/// One step: its name and its words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
}

impl Step {
    /// All words as one text.
    pub(crate) fn rest(&self) -> String {
        self.words.join(" ")
    }

    /// The word at `at`.
    pub(crate) fn text(&self, at: usize) -> Result<&str, String> {
        let word = self.words.get(at).map(String::as_str);
        word.ok_or_else(|| format!("{} needs {} word(s)", self.name, at + 1))
    }

    /// The word at `at` as a number.
    pub(crate) fn number(&self, at: usize) -> Result<i64, String> {
        let word = self.text(at)?;
        word.parse()
            .map_err(|_| format!("{}: {word:?} is not a number", self.name))
    }

    /// The size after an option; 0 without it.
    pub(crate) fn option(&self, name: &str) -> Result<u64, String> {
        let Some(at) = self.words.iter().position(|word| word == name) else {
            return Ok(0);
        };
        size(self.text(at + 1)?)
    }
}

/// A size: a number of bytes, of KiB with `k`, of MiB with `m`.
fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a size"))?;
    Ok(number * unit)
}

/// Steps separated by `--` or `;` words.
pub(crate) fn from_arguments(arguments: &[String]) -> Vec<Step> {
    arguments
        .split(|word| word == "--" || word == ";")
        .filter_map(|words| words.split_first())
        .map(|(name, words)| Step {
            name: name.clone(),
            words: words.to_vec(),
        })
        .collect()
}

/// Steps of a prompt: its lines that start with `agent:`, quoted with `"` where a word has blanks.
pub(crate) fn from_prompt(prompt: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for line in prompt.lines() {
        if let Some(script) = line.trim().strip_prefix("agent:") {
            steps.extend(from_arguments(&split_words(script)?));
        }
    }
    Ok(steps)
}

fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        if c == '"' {
            quoted = !quoted;
            word.get_or_insert_default();
        } else if c.is_whitespace() && !quoted {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    if quoted {
        return Err(format!("a quote is not closed in {line:?}"));
    }
    Ok(words)
}
