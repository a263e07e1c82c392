//! Tests with the real git.

mod capture;
mod obstacles;
mod open;
mod prepare;
mod retire;
mod rig;
