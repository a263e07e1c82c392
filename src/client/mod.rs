//! The daemon's clients: finds the control socket, asks, follows. Knows the protocol and nothing below.

mod connection;

pub use connection::{Client, ClientError, Follow, LOOK_TIMEOUT};
