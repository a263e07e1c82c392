//! Recorded outputs of real agents, replayed. `make conformance` names the folder.
