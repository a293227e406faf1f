//! The file of a plan, on disk or in any store.

use zvf_dataset::{Error, Failure, TaskPlanError};
use zvf_model::{json::Json, key::Key};
use zvf_store::{OpenError, OpenOptions, Read, ReadError, Store, WriteError, absolute_address};

/// An error of the file of a [plan](crate::Plan), before it is that of its work.
#[derive(Debug)]
pub struct PlanError {
    /// The address of the plan, or of the store or target that it is for.
    pub address: String,
    /// The cause.
    pub cause: PlanCause,
}

/// The cause of a [`PlanError`].
#[derive(Debug)]
pub enum PlanCause {
    /// The plan cannot be used.
    Problem(TaskPlanError),
    /// The folder of the plan cannot be opened.
    Open(OpenError),
    /// The plan cannot be read.
    Read(ReadError),
    /// The plan cannot be written.
    Write(WriteError),
}

impl PlanError {
    /// Creates the error of a plan that cannot be used.
    pub fn new(address: &str, problem: TaskPlanError) -> Self {
        let (address, cause) = (address.to_owned(), PlanCause::Problem(problem));
        Self { address, cause }
    }
}

/// The address of a plan.
pub(crate) struct PlanFile<'a> {
    address: &'a str,
    folder: String,
    name: Key,
}

impl<'a> PlanFile<'a> {
    /// Parses a path or an address.
    pub(crate) fn parse(address: &'a str) -> Result<Self, PlanError> {
        let full = absolute_address(address);
        let parts = full.rsplit_once(['/', std::path::MAIN_SEPARATOR]);
        let file = parts.and_then(|(folder, name)| {
            let name = Key::parse(name).ok().filter(|name| !name.is_root())?;
            let folder = if folder.is_empty() { "/" } else { folder }.to_owned();
            Some(Self {
                address,
                folder,
                name,
            })
        });
        file.ok_or_else(|| PlanError::new(address, TaskPlanError::Invalid))
    }

    /// Opens the folder for writing.
    pub(crate) fn create_folder(&self, open: &OpenOptions) -> Result<Store, PlanError> {
        let store = open.create(&self.folder);
        store.map_err(|error| self.error(PlanCause::Open(error)))
    }

    pub(crate) async fn read(&self, open: &OpenOptions) -> Result<Json, PlanError> {
        let store = open.open(&self.folder).map_err(|error| match error {
            OpenError::NotFound(_) => PlanError::new(self.address, TaskPlanError::Absent),
            error => self.error(PlanCause::Open(error)),
        })?;
        let found = store
            .read_one(Read::full(self.name.clone()))
            .await
            .map_err(|error| self.error(PlanCause::Read(error)))?;
        let bytes = found.ok_or_else(|| PlanError::new(self.address, TaskPlanError::Absent))?;
        let json = serde_json::from_slice(&bytes);
        json.map_err(|_| PlanError::new(self.address, TaskPlanError::Invalid))
    }

    pub(crate) async fn write(&self, json: &Json, open: &OpenOptions) -> Result<(), PlanError> {
        let bytes = format!("{json:#}\n").into();
        let store = self.create_folder(open)?;
        let put = store.put_many(vec![(self.name.clone(), bytes)]).await;
        put.map_err(|error| self.error(PlanCause::Write(error)))
    }

    fn error(&self, cause: PlanCause) -> PlanError {
        let address = self.address.to_owned();
        PlanError { address, cause }
    }
}

impl From<PlanError> for Failure {
    fn from(PlanError { address, cause }: PlanError) -> Self {
        match cause {
            PlanCause::Problem(source) => Self::Plan { address, source },
            PlanCause::Open(error) => error.into(),
            PlanCause::Read(error) => error.into(),
            PlanCause::Write(error) => error.into(),
        }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Failure::from(error).into()
    }
}
