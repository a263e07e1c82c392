//! Runners with real processes: trees, bounds, slots, and what survives which death.

mod bounds;
mod foreground;
mod rig;
mod survival;
mod trees;
