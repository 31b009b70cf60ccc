//! CREATE and DROP, between two epochs. A CREATE that fails leaves nothing and frees its name; one that is interrupted is
//! finished when the log is replayed.

use super::run::Control;
use super::source;
use crate::catalog::{ObjectId, Relation, RelationKind};
use crate::error::{Error, Kind, Result};
use crate::flow::define::{self, Change, Definition};
use crate::flow::engine::Past;
use crate::log::Epoch;
use crate::plan::relation::connector;
use crate::plan::streaming;
use crate::sql::statement::{Drop, ObjectKind};

impl Control {
    /// Creates what the statement says; a view has all rows that were there when it returns.
    pub(super) fn create(&mut self, text: String, late: bool) -> Result<()> {
        let id = self.catalog.id_next;
        let definition = Definition { id, late_id: late.then_some(id + 1), text, cores: self.config.cores() };
        let before = self.engine.catalog().clone();
        let made = self.try_create(&definition);
        if made.is_err() {
            let added: Vec<ObjectId> =
                self.engine.catalog().relations().map(|r| r.id).filter(|id| before.get(*id).is_none()).collect();
            added.into_iter().rev().for_each(|id| self.engine.drop_relation(id));
            return made;
        }
        // Numbers are used up even by what the log then refuses: they are never given twice.
        self.catalog.id_next = id + 1 + u32::from(late);
        if let Err(error) = self.log_change(&Change::Create(definition.clone())) {
            self.engine.drop_relation(id);
            return Err(error);
        }
        self.catalog.definitions.push(definition);
        self.publish();
        self.start_source(id)
    }

    fn try_create(&mut self, definition: &Definition) -> Result<()> {
        let reader = self.log.reader();
        let plan = define::create(&mut self.engine, &self.planner, &reader, definition)?;
        if let Some(plan) = plan {
            streaming::try_on_nothing(&plan.root)?;
            self.backfill(definition.id)?;
            if let Some(reason) = self.engine.failed().get(&definition.id) {
                return Err(Error::new(Kind::NotInPrerequisiteState, reason.clone())
                    .detail("The view could not be filled from the rows that are there."));
            }
        }
        Ok(())
    }

    /// Runs the logged rows of a new view's streams through it.
    pub(super) fn backfill(&mut self, id: ObjectId) -> Result<()> {
        let history = self.log.history();
        let catalog = self.engine.catalog().clone();
        let upto = self.epoch;
        let clock = self.clock.now();
        self.engine.backfill(id, clock, &mut |each| {
            history.all(&mut |epoch: Epoch| {
                if epoch.epoch > upto {
                    return Ok(());
                }
                let inputs = super::open::inputs(&catalog, &epoch, |relation| relation.kind == RelationKind::Stream)?;
                each(Past { epoch: epoch.epoch, clock: epoch.clock_us, inputs })
            })
        })
    }

    /// Drops objects and, with CASCADE, what reads them.
    pub(super) fn drop_objects(&mut self, drop: &Drop) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        let mut ids = Vec::new();
        for name in &drop.names {
            match self.engine.catalog().relation(name) {
                Ok(relation) => {
                    check_kind(drop.kind, relation)?;
                    ids.push(relation.id);
                }
                Err(_) if drop.if_exists => notices.push(format!("relation \"{name}\" does not exist, skipping")),
                Err(error) => return Err(error),
            }
        }
        // A view takes its late table along; what reads the late table is a dependant like any other.
        let late: Vec<ObjectId> = self
            .engine
            .catalog()
            .relations()
            .filter(|r| r.kind == RelationKind::LateTable && r.inputs.iter().any(|input| ids.contains(input)))
            .map(|r| r.id)
            .collect();
        let own: Vec<ObjectId> = ids.iter().chain(&late).copied().collect();
        let above = self.engine.catalog().dependants(&own);
        if !above.is_empty() && !drop.cascade {
            let names: Vec<String> = above.iter().map(|r| format!("{} \"{}\"", r.kind.name(), r.name)).collect();
            return Err(Error::new(
                Kind::DependentObjects,
                format!("cannot drop \"{}\" because other objects depend on it", drop.names.join("\", \"")),
            )
            .detail(format!("They are: {}.", names.join(", ")))
            .hint("Use DROP ... CASCADE to drop them too."));
        }
        notices.extend(
            above.iter().map(|relation| format!("drop cascades to {} \"{}\"", relation.kind.name(), relation.name)),
        );
        let all: Vec<ObjectId> = above.iter().rev().map(|r| r.id).chain(late).chain(ids).collect();
        if !all.is_empty() {
            self.log_change(&Change::Drop(all.clone()))?;
            self.forget(&all);
            self.publish();
        }
        Ok(notices)
    }

    /// Takes objects out of the engine, the catalog and the log's index.
    pub(super) fn forget(&mut self, ids: &[ObjectId]) {
        for id in ids {
            if let Some(running) = self.sources.remove(id) {
                running.stop();
            }
            self.engine.drop_relation(*id);
            self.log.forget(*id);
            self.row_ids.remove(id);
        }
        self.catalog.definitions.retain(|definition| !ids.contains(&definition.id));
        self.dropped.extend(ids);
    }

    /// Starts the connector of a stream, where it left off.
    pub(super) fn start_source(&mut self, id: ObjectId) -> Result<()> {
        let Some(relation) = self.engine.catalog().get(id).cloned() else { return Ok(()) };
        let Some(name) = relation.options.get("connector") else { return Ok(()) };
        let connector = connector(name)?;
        let partitions = self.engine.partitions(id);
        if partitions.values().any(|partition| partition.ended) {
            return Ok(());
        }
        let positions =
            partitions.iter().filter_map(|(number, p)| p.position.clone().map(|at| (*number, at))).collect();
        let opened = connector.open(&relation.options, &relation.schema, &positions)?;
        let endless = name == "nexmark" && relation.options.get("events").is_none_or(|events| events == "0");
        let running = source::start(id, &relation.name, opened, endless, self.handle.clone())?;
        self.sources.insert(id, running);
        Ok(())
    }
}

fn check_kind(kind: ObjectKind, relation: &Relation) -> Result<()> {
    let (fits, word) = match relation.kind {
        // RisingWave users drop append-only tables as tables.
        RelationKind::Stream => (matches!(kind, ObjectKind::Stream | ObjectKind::Table), "STREAM"),
        RelationKind::Table => (kind == ObjectKind::Table, "TABLE"),
        RelationKind::MaterializedView => (kind == ObjectKind::MaterializedView, "MATERIALIZED VIEW"),
        RelationKind::View => (kind == ObjectKind::View, "VIEW"),
        RelationKind::LateTable => (false, ""),
    };
    if fits {
        return Ok(());
    }
    let error = Error::new(Kind::WrongObjectType, format!("\"{}\" is a {}", relation.name, relation.kind.name()));
    Err(match relation.kind {
        RelationKind::LateTable => error.hint("A late table goes with its view: drop the view."),
        _ => error.hint(format!("Use DROP {word}.")),
    })
}
