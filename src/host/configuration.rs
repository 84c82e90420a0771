//! The configuration of `jitney serve`: where it is from, how it is read, and what is told of it.
//!
//! A start, a file that is read again and `jitney config check` read with the same code. What the check passes, a start on an empty
//! data directory takes: the check makes the entities, too, in a broker that is thrown away.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tracing::{info, warn};

use super::provision;
use crate::system::logging::{START, VERSION};
use jitney_config::{Configuration, Defaults, Expiring, Mistake};

/// The configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigArgs {
    /// The emulator's Config.json. The default is `/ServiceBus_Emulator/ConfigFiles/Config.json` if
    /// it exists, as in an image of the emulator, and else the emulator's default entities.
    #[arg(long, value_name = "FILE", env = "CONFIG_PATH")]
    pub(crate) config: Option<PathBuf>,
    /// The whole text of a Config.json, instead of a file.
    #[arg(long, value_name = "TEXT", env = "CONFIG_JSON", hide_env_values = true)]
    pub(super) config_json: Option<String>,
    /// When the configuration file has changed while the broker runs, delete the entities that it named before and names no
    /// longer, with their messages. Without this they stay.
    #[arg(long)]
    pub(crate) config_deletes: bool,
    /// The values of properties that the configuration does not give. The emulator's delete a message after an hour; the service's
    /// keep it. `"Defaults"` in the file goes before it. Servers with a store have them in the file.
    #[arg(long, value_enum, default_value_t, conflicts_with = "store")]
    pub(crate) config_defaults: DefaultsArg,
    /// Create a queue, or a subscription with its topic, when a client that may manage it first uses it: for tests, whose programs
    /// expect entities that no file names.
    #[arg(long, conflicts_with = "store")]
    pub(crate) create_on_use: bool,
    /// Refuse a configuration with anything that is a warning otherwise: what has no effect, such as names that are not known, and keys
    /// that others can guess.
    #[arg(long)]
    pub(super) strict_config: bool,
}

/// `--config-defaults`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DefaultsArg {
    /// A time to live of one hour, three deliveries.
    #[default]
    Emulator,
    /// Messages live for ever, ten deliveries.
    Service,
}

impl From<DefaultsArg> for Defaults {
    fn from(defaults: DefaultsArg) -> Self {
        match defaults {
            DefaultsArg::Emulator => Self::Emulator,
            DefaultsArg::Service => Self::Service,
        }
    }
}

/// What becomes of what has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutEffect {
    /// It is a warning.
    Warned,
    /// It is a mistake.
    Refused,
}

/// How a configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConfigurationReading {
    pub(crate) defaults: Defaults,
    pub(crate) without_effect: WithoutEffect,
}

impl ConfigurationReading {
    /// How a text is read that servers share: it says all that it needs.
    pub(crate) const SHARED: Self = Self {
        defaults: Defaults::Emulator,
        without_effect: WithoutEffect::Warned,
    };
}

/// Where the configuration is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigurationSource {
    /// A file.
    File(PathBuf),
    /// Nothing is given: the emulator's entities, until this file is there.
    Shipped(PathBuf),
    /// The variable of the environment, or the argument, that has the whole text.
    Text(String),
}

/// What the environment says of the configuration. An option goes before it.
#[derive(Debug)]
struct Variables {
    /// `CONFIG_PATH`.
    path: Option<PathBuf>,
    /// `CONFIG_JSON`.
    text: Option<String>,
}

/// A text that was read: what is wrong with it, and what only has no effect, a line each, prefixed with file name, line and column
/// as compilers do.
#[derive(Debug)]
pub(crate) struct ConfigurationReport {
    /// The configuration, or all mistakes.
    pub(crate) config: Result<Configuration, Vec<String>>,
    pub(crate) warnings: Vec<String>,
    /// Forwarding targets that the text does not have.
    pub(super) absent_targets: Vec<String>,
    pub(super) expiring: Expiring,
}

/// The path of the configuration in an image of the emulator: Testcontainers copies it there and
/// passes no option (`emulator.md#container`).
const IMAGE_CONFIG: &str = "/ServiceBus_Emulator/ConfigFiles/Config.json";
/// What the text is called that no file has.
const TEXT: &str = "CONFIG_JSON";

impl ConfigArgs {
    /// Returns how it is read.
    pub(crate) fn reading(&self) -> ConfigurationReading {
        ConfigurationReading {
            defaults: self.config_defaults.into(),
            without_effect: if self.strict_config {
                WithoutEffect::Refused
            } else {
                WithoutEffect::Warned
            },
        }
    }

    /// Returns where it is from.
    pub(crate) fn source(&self) -> ConfigurationSource {
        let variables = Variables {
            path: std::env::var_os("CONFIG_PATH").map(PathBuf::from),
            text: std::env::var(TEXT).ok(),
        };
        self.source_beside(Path::new(IMAGE_CONFIG), &variables)
    }

    /// Returns where it is from, beside the file of an image.
    fn source_beside(&self, image: &Path, variables: &Variables) -> ConfigurationSource {
        let named = self.config.as_deref();
        let named = named.filter(|path| !path.as_os_str().is_empty());
        let variable = variables.path.as_deref();
        let is_file_of_option = named.is_some() && named != variable;
        let is_text_of_variable = self.config_json == variables.text;
        if let Some(text) = self.text()
            && !(is_file_of_option && is_text_of_variable)
        {
            return ConfigurationSource::Text(text.to_owned());
        }
        match named {
            // A file that is mounted into an image at its own place, while the variable has the path of the host.
            Some(path) if variable == Some(path) && !path.exists() && image.exists() => {
                ConfigurationSource::File(image.to_owned())
            }
            Some(path) => ConfigurationSource::File(path.to_owned()),
            None if image.exists() => ConfigurationSource::File(image.to_owned()),
            None => ConfigurationSource::Shipped(image.to_owned()),
        }
    }

    /// Returns the text that is given in the place of a file.
    fn text(&self) -> Option<&str> {
        self.config_json.as_deref().filter(|text| !text.is_empty())
    }

    /// Reads the configuration for a start, and logs where it is from and what has no effect.
    ///
    /// # Errors
    ///
    /// All mistakes, a line each.
    pub(crate) fn load(&self, kept: Persistence) -> Result<Configuration, String> {
        let source = self.source();
        let reading = self.reading();
        match &source {
            ConfigurationSource::File(file) => {
                let named = self.config.as_ref();
                if let Some(named) = named.filter(|named| *named != file) {
                    let (named, file) = (named.display(), file.display());
                    warn!(
                        "CONFIG_PATH is {named}, and there is no such file: {file} is read instead"
                    );
                }
                if self.text().is_some() {
                    let file = file.display();
                    warn!("{TEXT} is set and has no effect: --config names {file}, which is read");
                }
                info!(
                    target: START,
                    file = %file.display(),
                    "jitney {VERSION}: the configuration is read from a file"
                );
            }
            ConfigurationSource::Shipped(_) => {
                info!(target: START, "jitney {VERSION}: the emulator's default entities are created");
            }
            ConfigurationSource::Text(_) => {
                info!(target: START, "jitney {VERSION}: the configuration is read from {TEXT}");
            }
        }
        let Some(text) = source.read()? else {
            if kept == Persistence::Durably && reading.defaults == Defaults::Emulator {
                let one = Expiring {
                    queues: 1,
                    topics: 1,
                    subscriptions: 1,
                };
                warn_of_expiring(one);
            }
            return Ok(Configuration::shipped(reading.defaults));
        };
        let report = reading.read(&source.name(), &text);
        for warning in &report.warnings {
            warn!("{warning}");
        }
        if kept == Persistence::Durably {
            warn_of_expiring(report.expiring);
        }
        report.config.map_err(|mistakes| mistakes.join("\n"))
    }

    /// Prefixes lines with the name of the file, in which they have their places.
    pub(crate) fn located(&self, lines: &str) -> String {
        let name = match self.source() {
            ConfigurationSource::Shipped(_) => return lines.to_owned(),
            source @ (ConfigurationSource::File(_) | ConfigurationSource::Text(_)) => source.name(),
        };
        let lines = lines.lines().map(|line| format!("{name}:{line}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Whether messages outlive the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    Durably,
    InMemory,
}

impl ConfigurationSource {
    /// Returns what it is called in messages.
    fn name(&self) -> String {
        match self {
            Self::File(file) | Self::Shipped(file) => file.display().to_string(),
            Self::Text(_) => TEXT.to_owned(),
        }
    }

    /// Returns the text; `None` if nothing is given.
    ///
    /// # Errors
    ///
    /// The system's, prefixed with the file name.
    pub(crate) fn read(&self) -> Result<Option<String>, String> {
        match self {
            Self::File(file) => read(file).map(Some),
            Self::Shipped(_) => Ok(None),
            Self::Text(text) => Ok(Some(text.clone())),
        }
    }
}

/// Reads the text of a configuration, in UTF-8, or in UTF-16 with a byte order mark as Windows PowerShell writes it.
///
/// # Errors
///
/// The system's, prefixed with the file name.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| format!("{name}: {error}"))?;
    decoded(bytes)
        .ok_or_else(|| format!("{name}: it is no text in UTF-8: save it in that encoding"))
}

fn decoded(bytes: Vec<u8>) -> Option<String> {
    let words = |rest: &[u8], word: fn([u8; 2]) -> u16| {
        let (words, odd) = rest.as_chunks::<2>();
        let words: Vec<u16> = words.iter().copied().map(word).collect();
        odd.is_empty().then(|| String::from_utf16(&words).ok())?
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => words(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => words(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    }
}

impl ConfigurationReading {
    /// Reads the text of a configuration, whose name is for messages.
    pub(crate) fn read(self, name: &str, text: &str) -> ConfigurationReport {
        let checked = jitney_config::check(text, self.defaults);
        let line = |mistake: Mistake, kind: &str| {
            let (line, column) = (mistake.line, mistake.column);
            format!("{name}:{line}:{column}: {kind}{mistake}")
        };
        let told = |mistakes: Vec<Mistake>| {
            let lines = mistakes.into_iter().map(|it| line(it, ""));
            lines.collect::<Vec<_>>()
        };
        let (config, warnings) = match (self.without_effect, checked.config) {
            (WithoutEffect::Refused, config) if !checked.warnings.is_empty() => {
                let mut all = config.err().unwrap_or_default();
                all.extend(checked.warnings);
                all.sort_by_key(|it| (it.line, it.column));
                (Err(all), Vec::new())
            }
            (WithoutEffect::Refused | WithoutEffect::Warned, config) => (config, checked.warnings),
        };
        ConfigurationReport {
            config: config.map_err(told),
            warnings: warnings
                .into_iter()
                .map(|it| line(it, "warning: "))
                .collect(),
            absent_targets: told(checked.absent_targets),
            expiring: checked.expiring,
        }
    }

    /// Parses the text of a configuration that is read while the server runs, and logs what has no effect.
    ///
    /// # Errors
    ///
    /// All mistakes, a line each.
    pub(crate) fn parse(self, name: &str, text: &str) -> Result<Configuration, String> {
        let (config, warnings) = self.parse_with_warnings(name, text)?;
        for warning in &warnings {
            warn!("{warning}");
        }
        Ok(config)
    }

    /// Parses the text of a configuration, and returns what has no effect, too.
    ///
    /// # Errors
    ///
    /// All mistakes, a line each.
    pub(crate) fn parse_with_warnings(
        self,
        name: &str,
        text: &str,
    ) -> Result<(Configuration, Vec<String>), String> {
        let ConfigurationReport {
            config, warnings, ..
        } = self.read(name, text);
        let config = config.map_err(|mistakes| mistakes.join("\n"))?;
        Ok((config, warnings))
    }

    /// Checks a configuration, and makes its entities to see whether a start could.
    pub(crate) fn check(self, name: &str, text: &str) -> ConfigurationReport {
        let mut report = self.read(name, text);
        let absent = std::mem::take(&mut report.absent_targets);
        report.config = match report.config {
            Ok(config) => {
                let refused = provision::rehearse(&config);
                let refused = refused.into_iter().map(|line| format!("{name}:{line}"));
                let all: Vec<String> = absent.into_iter().chain(refused).collect();
                if all.is_empty() { Ok(config) } else { Err(all) }
            }
            Err(mut mistakes) => {
                mistakes.extend(absent);
                Err(mistakes)
            }
        };
        report
    }
}

/// Warns of entities whose messages go after an hour although the configuration does not say so, where messages are kept.
fn warn_of_expiring(expiring: Expiring) {
    let Expiring {
        queues,
        topics,
        subscriptions,
    } = expiring;
    if 0 < queues + topics + subscriptions {
        warn!(
            target: START,
            queues,
            topics,
            subscriptions,
            "entities have the emulator's defaults: a message that is an hour old is deleted, dead-lettering is off, and \
             MaxDeliveryCount is 3 where it is not given. Set DefaultMessageTimeToLive, or have the service's defaults with \
             \"Defaults\": \"service\" in UserConfig, or with --config-defaults service"
        );
    }
}

/// Returns what a check tells of a configuration that is good.
pub(crate) fn summary(config: &Configuration) -> String {
    let queues: usize = config.namespaces.iter().map(|it| it.queues.len()).sum();
    let topics: usize = config.namespaces.iter().map(|it| it.topics.len()).sum();
    format!("ok ({queues} queues, {topics} topics)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(config: Option<&Path>, text: Option<&str>) -> ConfigArgs {
        ConfigArgs {
            config: config.map(Path::to_owned),
            config_json: text.map(ToOwned::to_owned),
            config_deletes: false,
            config_defaults: DefaultsArg::Emulator,
            create_on_use: false,
            strict_config: false,
        }
    }

    #[test]
    fn a_file_is_read_in_the_encodings_that_editors_write() {
        let text = "{\"ä\":1}";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(
            decoded([&[0xff, 0xfe], &little[..]].concat()).unwrap(),
            text
        );
        assert_eq!(decoded([&[0xfe, 0xff], &big[..]].concat()).unwrap(), text);
        assert_eq!(decoded(text.into()).unwrap(), text);
        for wrong in [&b"\xe4"[..], b"\xff\xfea", b"\xff\xfe\x00\xd8"] {
            assert_eq!(decoded(wrong.to_vec()), None, "{wrong:?}");
        }
    }

    const EMULATOR: ConfigurationReading = ConfigurationReading {
        defaults: Defaults::Emulator,
        without_effect: WithoutEffect::Warned,
    };
    const STRICT: ConfigurationReading = ConfigurationReading {
        without_effect: WithoutEffect::Refused,
        ..EMULATOR
    };

    #[test]
    fn the_configuration_is_a_text_a_file_or_that_of_an_image() {
        let directory = tempfile::tempdir().unwrap();
        let (image, own) = (directory.path().join("image"), directory.path().join("own"));
        let source = |args: &ConfigArgs, variable: Option<&Path>| {
            let variables = Variables {
                path: variable.map(Path::to_owned),
                text: None,
            };
            args.source_beside(&image, &variables)
        };
        let (file, image_file) = (
            ConfigurationSource::File(own.clone()),
            ConfigurationSource::File(image.clone()),
        );
        let none = args(None, None);
        assert_eq!(
            source(&none, None),
            ConfigurationSource::Shipped(image.clone())
        );
        assert_eq!(ConfigurationSource::Shipped(image.clone()).read(), Ok(None));
        let named = args(Some(&own), None);
        // Without the file of an image, the missing file is a mistake.
        assert_eq!(source(&named, Some(&own)), file);
        assert!(file.read().unwrap_err().contains("own: "));
        std::fs::write(&image, "image").unwrap();
        assert_eq!(source(&none, None), image_file);
        assert_eq!(source(&named, Some(&own)), image_file);
        // One that an argument names is never another.
        assert_eq!(source(&named, None), file);
        std::fs::write(&own, "own").unwrap();
        assert_eq!(source(&named, Some(&own)), file);
        assert_eq!(file.read(), Ok(Some("own".to_owned())));
        let text = args(None, Some("{}"));
        assert_eq!(
            source(&text, None),
            ConfigurationSource::Text("{}".to_owned())
        );
        // As a composition has it whose own variable is not set.
        assert_eq!(
            source(&args(Some(Path::new("")), Some("")), None),
            image_file
        );
    }

    #[test]
    fn a_file_that_an_option_names_goes_before_a_text_of_the_environment() {
        let image = Path::new("/nowhere/image");
        let own = Path::new("own");
        let source = |args: &ConfigArgs, path: Option<&Path>, text: Option<&str>| {
            let variables = Variables {
                path: path.map(Path::to_owned),
                text: text.map(ToOwned::to_owned),
            };
            args.source_beside(image, &variables)
        };
        let (file, text) = (
            ConfigurationSource::File(own.to_owned()),
            ConfigurationSource::Text("{}".to_owned()),
        );
        let both = args(Some(own), Some("{}"));
        assert_eq!(source(&both, None, Some("{}")), file);
        // The file is of the environment, too.
        assert_eq!(source(&both, Some(own), Some("{}")), text);
        // The text is of an option.
        assert_eq!(source(&both, None, None), text);
        assert_eq!(source(&both, None, Some("{ }")), text);
        // A composition sets the options whose variables it does not have to nothing.
        let unnamed = args(Some(Path::new("")), Some("{}"));
        assert_eq!(source(&unnamed, None, Some("{}")), text);
    }

    #[test]
    fn every_mistake_is_told_with_its_file() {
        let text = r#"{"UserConfig":{"Namespaces":[{"Queues":[{"Name":""},7]}],"Other":1}}"#;
        let report = EMULATOR.read("c.json", text);
        let mistakes = report.config.unwrap_err();
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(
            mistakes[0].starts_with("c.json:1:49: UserConfig."),
            "{mistakes:?}"
        );
        let [warning] = &report.warnings[..] else {
            panic!("{:?}", report.warnings);
        };
        assert!(
            warning.starts_with("c.json:1:58: warning: UserConfig.Other: "),
            "{warning}"
        );
        let mistakes = STRICT.parse("c.json", text).unwrap_err();
        assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
        assert!(
            mistakes.lines().all(|line| line.starts_with("c.json:1:")),
            "{mistakes}"
        );
    }

    #[test]
    fn a_check_makes_the_entities_too() {
        let queues = |rest: &str| {
            format!(
                r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Queues":[{{"Name":"q"{rest}}}]}}]}}}}"#
            )
        };
        assert!(EMULATOR.check("c", &queues("")).config.is_ok());
        let forward = queues(r#","Properties":{"ForwardTo":"none"}"#);
        let mistakes = EMULATOR.check("c", &forward).config.unwrap_err();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(mistakes[0].starts_with("c:1:90: "), "{mistakes:?}");
        // More rules with SQL filters than a topic may have: only a broker finds out.
        let rules = (0..=jitney_rules::limits::SQL_RULES_MAX).map(|at| {
            format!(r#"{{"Name":"r{at}","Properties":{{"FilterType":"Sql","SqlFilter":{{"SqlExpression":"a = 1"}}}}}}"#)
        });
        let many = format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Topics":[{{"Name":"t","Subscriptions":[{{"Name":"s","Rules":[{}]}}]}}]}}]}}}}"#,
            rules.collect::<Vec<_>>().join(",")
        );
        let mistakes = EMULATOR.check("c", &many).config.unwrap_err();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(
            mistakes[0].starts_with("c:1:70: ") && mistakes[0].contains("SQL filters at most"),
            "{mistakes:?}"
        );
    }
}
