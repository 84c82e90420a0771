//! The command line.

mod amqp;
mod arguments;
mod attention;
mod backup;
mod broker;
mod carry;
mod client;
mod connection_string;
mod entities;
mod environment;
mod error;
mod health;
mod jobs;
mod locks;
mod log;
mod messages;
mod pages;
mod path;
mod screen;
mod server;
mod shell;
mod stats;
mod store;
mod table;
mod top;
mod words;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::host::configuration::{self, ConfigurationReading, DefaultsArg, WithoutEffect};
use crate::net::certs::{self, CertsArgs};
use crate::run::arguments::ServeArgs;
use crate::run::start;
use crate::system::{logging, print};
use broker::BrokerCommand;
use environment::EnvironmentArgs;
use health::HealthArgs;

/// Which credential a command uses, for the end of the help.
const CREDENTIALS: &str = "\
Which broker, and which key: commands go to the broker on this machine, or to that of --connection STRING
(SERVICEBUS_CONNECTION_STRING) or --url URL (JITNEY_URL). The key is that of the connection string; without one it is the key
in --data-dir DIR (jitney-data), which is for this machine only, or that of --operator-key-file FILE. A broker in the
development profile needs none.

Exit codes: 0 done, 1 refused, 2 called wrongly, 3 the broker cannot be reached, 4 what is named does not exist.";

/// A broker that speaks the Azure Service Bus protocol to the unmodified official SDKs.
#[derive(Debug, Parser)]
#[command(version, about, after_help = CREDENTIALS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker.
    Serve(Box<ServeArgs>),
    /// Create certificates for TLS: a local authority, one for the broker, and any for clients.
    Certs(CertsArgs),
    /// Ask a broker on this machine whether it is well: for health checks of containers. The exit code is 0 if it is.
    Health(HealthArgs),
    /// Print the environment of programs that use a broker on this machine: its connection string, and the authority to trust.
    Env(EnvironmentArgs),
    /// Check a configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check the log in a data directory.
    #[command(subcommand)]
    Log(log::LogCommand),
    /// Manage a store that servers share: move namespaces in, copy them out, release and delete them.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Create a data directory from a backup.
    Restore(backup::RestoreArgs),
    #[command(flatten)]
    Broker(Box<BrokerCommand>),
    /// Write the completions of a shell to standard output.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write manual pages, one for each command.
    Man {
        /// The directory for them.
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check a Config.json: report every mistake that would end a start, and every name that has no effect. The exit code is 0 if a
    /// broker with an empty data directory starts with it.
    Check {
        /// The file.
        file: PathBuf,
        /// Count each warning as a mistake, as `jitney serve --strict-config` does.
        #[arg(long)]
        strict: bool,
        /// The values of properties that the file does not give.
        #[arg(long, value_enum, default_value_t)]
        config_defaults: DefaultsArg,
    },
}

/// Returns the definition of the command line. Every option of `jitney serve` has a variable: `--data-dir` is `JITNEY_DATA_DIR`. A
/// variable that is empty is as if it were not set: files for containers set what they do not need to nothing.
fn command() -> clap::Command {
    let is_empty = |name: &str| std::env::var_os(name).is_some_and(|value| value.is_empty());
    Cli::command().mut_subcommand("serve", |serve| {
        serve.mut_args(|arg| {
            let Some(long) = arg.get_long() else {
                return arg;
            };
            let own = format!("JITNEY_{}", long.replace('-', "_").to_ascii_uppercase());
            let is_own = arg.get_env().is_none();
            let name = arg
                .get_env()
                .map_or(own, |name| name.to_string_lossy().into_owned());
            if is_empty(&name) {
                return arg.env(None::<&str>);
            }
            if !is_own {
                return arg;
            }
            let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
            // Values of other options may have commas of their own.
            let mut kinds = arg.get_value_names().unwrap_or_default().iter();
            let is_list = matches!(arg.get_action(), ArgAction::Append)
                && kinds.any(|kind| ["ADDR", "CIDR", "NAME"].contains(&kind.as_str()));
            if is_flag {
                arg.env(name).value_parser(BoolishValueParser::new())
            } else if is_list && arg.get_value_delimiter().is_none() {
                arg.env(name).value_delimiter(',')
            } else if arg.get_action().takes_values() {
                arg.env(name)
            } else {
                // Help.
                arg
            }
        })
    })
}

/// Reads a command line, and the variables of the environment. Messages are in memory or in a directory: what an argument says
/// goes before a variable.
fn parse(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Command, clap::Error> {
    let matches = command().try_get_matches_from(arguments)?;
    let mut command = Cli::from_arg_matches(&matches)?.command;
    if let (Command::Serve(args), Some((_, matches))) = (&mut command, matches.subcommand()) {
        let is_argument = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        match (is_argument("ephemeral"), is_argument("data_dir")) {
            (true, true) => {
                let text = "--ephemeral keeps messages in memory, and --data-dir in a directory: give one of them";
                return Err(Cli::command().error(ErrorKind::ArgumentConflict, text));
            }
            (false, true) => args.ephemeral = false,
            (true | false, false) => {}
        }
    }
    Ok(command)
}

/// Runs the command that the command line names.
#[must_use]
pub fn main() -> ExitCode {
    let parsed = match parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    match parsed {
        Command::Serve(args) => {
            if let Err(error) = logging::start(&args.logs) {
                print::complain(error);
                return ExitCode::FAILURE;
            }
            if !args.ephemeral && args.data_dir.is_file() {
                let file = args.data_dir.display();
                logging::fatal(format_args!(
                    "--data-dir {file} is a file; a directory is needed, or a name that is free"
                ));
                return ExitCode::from(2);
            }
            start::run(&args)
        }
        Command::Certs(args) => certs::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Env(args) => environment::run(&args),
        Command::Config(ConfigCommand::Check {
            file,
            strict,
            config_defaults,
        }) => {
            let without_effect = if strict {
                WithoutEffect::Refused
            } else {
                WithoutEffect::Warned
            };
            let reading = ConfigurationReading {
                defaults: config_defaults.into(),
                without_effect,
            };
            check(&file, reading)
        }
        Command::Log(command) => log::run(&command),
        Command::Store(command) => store::run(&command),
        Command::Restore(args) => backup::restore(&args),
        Command::Broker(command) => broker::run(&command),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(), "jitney", &mut script);
            print::line(String::from_utf8_lossy(&script).trim_end());
            ExitCode::SUCCESS
        }
        Command::Man { directory } => write_man(&directory),
    }
}

/// Shows the help, or why the arguments are wrong.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.kind() != ErrorKind::ValueValidation {
        error.exit();
    }
    let rendered = error.render();
    if io::stderr().is_terminal() {
        print::control_error(words::of_parser(&rendered.ansi().to_string()));
    } else {
        print::complain(words::of_parser(&rendered.to_string()).trim_end());
    }
    ExitCode::from(2)
}

fn write_man(directory: &Path) -> ExitCode {
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command().name("jitney"), directory));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::complain(format_args!("jitney: {}: {error}", directory.display()));
            ExitCode::FAILURE
        }
    }
}

/// Checks a configuration as a start would read it: warnings first, then mistakes.
fn check(file: &Path, reading: ConfigurationReading) -> ExitCode {
    let name = file.display().to_string();
    if !file.exists() {
        print::complain(format_args!("jitney: There is no file {name}."));
        return ExitCode::from(4);
    }
    let text = match configuration::read(file) {
        Ok(text) => text,
        Err(error) => {
            print::complain(error);
            return ExitCode::FAILURE;
        }
    };
    let report = reading.check(&name, &text);
    for warning in &report.warnings {
        print::complain(warning);
    }
    match &report.config {
        Ok(config) => {
            let warnings = match report.warnings.len() {
                0 => String::new(),
                1 => "; 1 warning".to_owned(),
                count => format!("; {count} warnings"),
            };
            let summary = configuration::summary(config);
            print::line(format_args!("{name}: {summary}{warnings}"));
            ExitCode::SUCCESS
        }
        Err(mistakes) => {
            print::complain(mistakes.join("\n"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::memory::ByteSize;

    fn parsed(arguments: &[&str]) -> Result<Command, String> {
        let arguments = ["jitney"].iter().chain(arguments);
        parse(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_option_of_serve_has_a_variable() {
        let command = command();
        let serve = command.find_subcommand("serve").unwrap();
        let options = serve
            .get_arguments()
            .filter(|arg| arg.get_long() != Some("help"));
        let without: Vec<_> = options.filter(|arg| arg.get_env().is_none()).collect();
        assert_eq!(without, Vec::<&clap::Arg>::new());
        let of = |long: &str| {
            let arg = serve
                .get_arguments()
                .find(|arg| arg.get_long() == Some(long));
            arg.unwrap()
                .get_env()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        };
        assert_eq!(of("amqp"), "JITNEY_AMQP");
        assert_eq!(
            of("allow-any-key-beyond-loopback"),
            "JITNEY_ALLOW_ANY_KEY_BEYOND_LOOPBACK"
        );
        assert_eq!(of("http-port"), "EMULATOR_HTTP_PORT");
    }

    #[test]
    fn the_help_says_that_an_export_leaves_the_namespace_in_the_store() {
        let Err(help) = parsed(&["store", "export", "--help"]) else {
            panic!("the help is no command");
        };
        let help: Vec<&str> = help.split_whitespace().collect();
        let help = help.join(" ");
        for said in ["Copy a namespace", "stays in the store"] {
            assert!(help.contains(said), "{help}");
        }
        assert!(!help.contains("Move"), "{help}");
    }

    #[test]
    fn messages_are_kept_or_ephemeral_and_not_both() {
        let Ok(Command::Serve(args)) = parsed(&["serve", "--ephemeral", "--http-port", "8080"])
        else {
            panic!("it is a command");
        };
        assert!(args.ephemeral);
        assert_eq!(args.listeners.http_port, Some(8080));
        assert!(parsed(&["serve", "--ephemeral", "--data-dir", "d"]).is_err());
        assert!(parsed(&["serve", "--amqp", "everywhere"]).is_err());
        assert!(parsed(&["serve", "--amqp", "5673", "--http", "localhost:5301"]).is_ok());
    }

    #[test]
    fn what_an_error_says_to_give_can_be_given_behind_any_command() {
        for command in [&["queues", "list"][..], &["stats"], &["jobs", "show", "1"]] {
            for option in [
                "--operator-key-file",
                "--data-dir",
                "--connection",
                "--url",
                "--ca",
            ] {
                let arguments = [command, &[option, "x"]].concat();
                assert!(parsed(&arguments).is_ok(), "{arguments:?}");
            }
        }
    }

    #[test]
    fn there_is_one_shard_unless_more_are_wanted() {
        for (arguments, shards) in [(&["serve"][..], 1), (&["serve", "--shards", "4"], 4)] {
            let Ok(Command::Serve(args)) = parsed(arguments) else {
                panic!("it is a command");
            };
            assert_eq!(args.shards, shards);
        }
        for wrong in ["0", "-1", "65", "many"] {
            assert!(parsed(&["serve", "--shards", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_of_memory_has_a_unit_and_is_not_too_little() {
        let Ok(Command::Serve(args)) = parsed(&["serve", "--memory-limit", "512MiB"]) else {
            panic!("it is a command");
        };
        assert_eq!(
            (args.memory_limit, args.cache_mb),
            (Some(ByteSize(512 << 20)), None)
        );
        let text = parsed(&["serve", "--memory-limit", "1MiB"]).unwrap_err();
        assert!(text.contains("64MiB is the least"), "{text}");
        let text = parsed(&["serve", "--memory-limit", "lots"]).unwrap_err();
        assert!(text.contains("as in 512MiB"), "{text}");
    }
}
