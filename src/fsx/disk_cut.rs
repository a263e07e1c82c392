//! When a crash disk loses power and what is left then: plain values.

/// When the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The operation that does not happen, from 1; nothing after it does either.
    pub at: usize,
    /// If that operation is an append: so many of its bytes still got into the file.
    pub torn: usize,
}

/// Which names are there after the restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamesKept {
    /// Only those that a folder sync covered.
    Synced,
    /// All that programs saw.
    All,
}

/// Which content is there after the restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKept {
    /// Only what a file sync covered.
    Synced,
    /// That, and so many bytes of what was appended after it.
    Torn(usize),
    /// That, and zeros in place of what was appended after it.
    Zeroed,
    /// All that programs saw.
    All,
}

/// What is left after the restart. `All` and `All` is the death of the process alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survival {
    /// Names.
    pub names: NamesKept,
    /// Content.
    pub data: DataKept,
}
