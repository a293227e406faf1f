//! Problems of plans of tasks.

use zvf_model::error_kind::ErrorKind;

/// Problem of a plan of tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskPlanError {
    /// There is no plan at the address.
    #[error("there is no plan; write it with `zvf task plan`")]
    Absent,
    /// The file is not a plan, or is damaged.
    #[error("it is not a plan that `zvf task plan` of this version wrote")]
    Invalid,
    /// The plan has fewer tasks.
    #[error("there is no task {index}; the plan has {tasks} tasks, counted from 0")]
    NoTask {
        /// The requested task.
        index: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// Not every task is done.
    #[error("{} of {tasks} tasks are not done, the first is {}; run them and commit again",
        missing.len(), missing.first().copied().unwrap_or_default())]
    Missing {
        /// The missing tasks.
        missing: Vec<usize>,
        /// Number of tasks.
        tasks: usize,
    },
    /// The result of a task cannot be parsed.
    #[error("the result of task {task} is damaged; plan again")]
    Damaged {
        /// The task.
        task: usize,
    },
    /// The plan of a validation is inside the store, into which a validation writes nothing.
    #[error("the plan of a validation cannot be inside the store; write it to another folder")]
    InStore,
    /// The plan is in another phase than the operation belongs to.
    #[error("the plan is in the phase `{phase}`; {advice}")]
    Phase {
        /// Name of the phase.
        phase: &'static str,
        /// The next step.
        advice: &'static str,
    },
    /// The tasks of the plan compute an attribute with a function, which was not given.
    #[error(
        "its tasks compute values with a function; run them with `TaskPlan::run_with`, or \
             `zvf task run` if `zvf` made the plan"
    )]
    NoValues,
    /// No share of the input was filled.
    #[error("no share of the input was filled, so there is nothing to write")]
    NoShares,
    /// The store was changed, replaced or swept since the plan was made.
    #[error("the store was changed or replaced since the plan was made; plan again")]
    Outdated,
    /// The store of an export was changed, or the plan replaced.
    #[error("the store was changed, or the plan replaced, since the plan was made; plan again")]
    Replaced,
    /// An object that the tasks of an export share is not as it was written.
    #[error("{0} is damaged; plan again with `--restart`")]
    Object(String),
    /// A file of an export is missing, or has another size than the task wrote.
    #[error("{0} is not as its task wrote it; plan again with `--restart`")]
    File(String),
    /// Two tasks have written a file of an export.
    #[error("{0} was written by two tasks; plan again with `--restart`")]
    Twice(String),
    /// The target of an export has a file that no task has written.
    #[error("{0} was not written by a task of the plan; remove it and commit again")]
    Foreign(String),
}

impl TaskPlanError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Absent => ErrorKind::NotFound,
            Self::Outdated | Self::Replaced | Self::Missing { .. } => ErrorKind::Conflict,
            Self::Invalid
            | Self::NoTask { .. }
            | Self::Damaged { .. }
            | Self::InStore
            | Self::Phase { .. }
            | Self::NoValues
            | Self::NoShares
            | Self::Object(_)
            | Self::File(_)
            | Self::Twice(_)
            | Self::Foreign(_) => ErrorKind::InvalidInput,
        }
    }
}
