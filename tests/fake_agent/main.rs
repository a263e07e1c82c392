//! A scripted coding agent that misbehaves on demand.

fn main() {}
