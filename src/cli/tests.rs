//! The grammar and the help.
