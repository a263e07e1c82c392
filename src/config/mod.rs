//! (skeleton) Configuration and task files: schema, merge with sources, errors with file, line and key.

mod model;

pub use model::{
    AgentConfig, AgentKind, BudgetConfig, Config, GateConfig, GateMode, GuardsConfig, LimitsConfig,
    LoopConfig, Require, RoleConcurrency, RoleConfig, RoleInterrupt, RoleSideEffect, ShipConfig,
    ShipMode, StageConfig, StoreConfig, StoreKind, TaskSpec, TaskState,
};
