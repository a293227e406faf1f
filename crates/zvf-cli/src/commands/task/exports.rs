//! Plans of exports.

use std::error::Error;

use serde_json::{Value, json};
use zvf::OpenOptions;
use zvf_serve::{ExportPlan, ExportPlanOptions};

use super::{CommitArgs, PlanArgs, StatusArgs, TaskProgress, outcome};
use crate::{
    commands::export::{self, ExportArgs},
    display::{count_noun, len_u64},
    outcome::CommandOutcome,
};

/// Reads a plan; `None` if it is not of an export.
pub(super) async fn read(address: &str) -> Result<Option<ExportPlan>, Box<dyn Error>> {
    Ok(ExportPlan::read(address, &OpenOptions::default()).await?)
}

pub(super) async fn plan(
    arguments: &PlanArgs,
    export: &ExportArgs,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut options = ExportPlanOptions::new().replaces_unfinished(arguments.restart);
    options.tasks = usize::try_from(arguments.tasks).ok();
    let plan = export::plan(export, options).await?;
    plan.write(&arguments.plan, &OpenOptions::default()).await?;
    let tasks = count_noun(len_u64(plan.tasks()), "task", "tasks");
    let (store, target) = (plan.store(), plan.target());
    let text = format!("{}: {tasks} to export {store} to {target}", arguments.plan);
    let report = described(&arguments.plan, &plan);
    Ok(outcome(arguments.json, &report, text))
}

pub(super) async fn status(
    arguments: &StatusArgs,
    plan: &ExportPlan,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let status = plan.status().await?;
    let progress = TaskProgress {
        tasks: status.tasks,
        missing: status.missing,
        is_committed: status.is_committed,
    };
    Ok(progress.outcome(arguments, described(&arguments.plan, plan)))
}

pub(super) async fn commit(arguments: &CommitArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let plan = ExportPlan::commit(&arguments.plan, &OpenOptions::default()).await?;
    let mut object = described(&arguments.plan, &plan);
    let mut text = format!("{}: committed", plan.target());
    let mut warnings = Vec::new();
    if let Some(report) = plan.report() {
        let link = plan.viewer_link();
        object["report"] = export::object(plan.target(), link.as_deref(), &report);
        text = format!("{text}\n{}", export::summary(plan.target(), link, &report));
        warnings = report.notes;
    }
    let mut done = outcome(arguments.json, &object, text);
    if !arguments.json {
        done.warnings = warnings;
    }
    Ok(done)
}

fn described(address: &str, plan: &ExportPlan) -> Value {
    json!({
        "plan": address,
        "job": "export precomputed",
        "store": plan.store(),
        "output": plan.target(),
        "tasks": plan.tasks(),
        "committed": plan.is_committed(),
    })
}
