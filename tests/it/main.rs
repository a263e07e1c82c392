//! All integration tests are one binary.
