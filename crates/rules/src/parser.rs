//! From words to expressions and statements, by precedence (`rules.md#sql-filters`).
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "any other token or expression is an error, or no operator"
)]

use super::action::{ActionTarget, Statement};
use super::evaluate::{Arithmetic, Comparison, Expression, LikeOperands, Property, Sign};
use super::lexer::{Keyword, Token, TokenKind, tokens, too_large};
use super::sql::{Parameters, SqlError};
use super::system::{Settable, System};
use crate::limits;
use jitney_message::{Scalar, same_name};

/// Precedences, the tightest last.
mod power {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 3;
    pub(super) const NOT: u8 = 5;
    pub(super) const COMPARISON: u8 = 7;
    pub(super) const SUM: u8 = 9;
    pub(super) const PRODUCT: u8 = 11;
    pub(super) const SIGN: u8 = 13;
}

pub(super) struct Parser<'a> {
    text: &'a str,
    parameters: &'a Parameters,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// A part of an expression.
struct ExpressionNode {
    expression: Expression,
    is_condition: bool,
    /// Where it begins.
    at: usize,
}

/// A binary operator.
enum Infix {
    And,
    Arithmetic(Arithmetic, u8),
    Comparison(Comparison),
    In { negated: bool },
    IsNull,
    Like { negated: bool },
    Or,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, parameters: &'a Parameters) -> Result<Self, SqlError> {
        if let Some((at, _)) = text.char_indices().nth(limits::SQL_LENGTH_MAX) {
            let problem = format!(
                "the text has more than {} characters",
                limits::SQL_LENGTH_MAX
            );
            return Err(SqlError::new(text, at, problem));
        }
        Ok(Self {
            text,
            parameters,
            tokens: tokens(text)?,
            at: 0,
            depth: 0,
        })
    }

    /// Takes all of the text for a condition.
    pub(super) fn condition(mut self) -> Result<Expression, SqlError> {
        let node = self.expression(0)?;
        if *self.peek() != TokenKind::End {
            return Err(self.unexpected("an operator, AND, OR or the end"));
        }
        self.into_condition(node)
    }

    /// Takes all of the text for the statements of an action.
    pub(super) fn statements(mut self) -> Result<Vec<Statement>, SqlError> {
        let mut statements = Vec::new();
        loop {
            let statement = match self.peek() {
                TokenKind::Keyword(Keyword::Set) => self.set()?,
                TokenKind::Keyword(Keyword::Remove) => {
                    self.at += 1;
                    let (property, at) = self.name()?;
                    Statement::Remove(self.target(property, at)?)
                }
                _ => return Err(self.unexpected("SET or REMOVE")),
            };
            if limits::SQL_STATEMENTS_MAX <= statements.len() {
                let problem = format!(
                    "an action has {} statements at most",
                    limits::SQL_STATEMENTS_MAX
                );
                return Err(self.error(self.place(), problem));
            }
            statements.push(statement);
            let separated = self.take_symbol(";") || self.take_symbol(",");
            match self.peek() {
                TokenKind::End => return Ok(statements),
                TokenKind::Keyword(Keyword::Set | Keyword::Remove) => {}
                _ if separated => {}
                _ => return Err(self.unexpected("an operator, ';', SET, REMOVE or the end")),
            }
        }
    }

    fn set(&mut self) -> Result<Statement, SqlError> {
        self.at += 1;
        let (property, at) = self.name()?;
        let target = self.target(property, at)?;
        self.expect_symbol("=")?;
        let value = self.operand(power::COMPARISON + 1)?;
        Ok(Statement::Set(target, value))
    }

    /// Returns the property that a statement changes.
    fn target(&self, property: Property, at: usize) -> Result<ActionTarget, SqlError> {
        match property {
            Property::User(name) => Ok(ActionTarget::User(name)),
            Property::System(system) => match system.settable() {
                Settable::Changed(field) => Ok(ActionTarget::Field(field)),
                Settable::Set(setting) => Ok(ActionTarget::Setting(setting)),
                Settable::No => {
                    let problem = "an action cannot change this property: it can change MessageId, CorrelationId, To, ReplyTo, Label, SessionId, ReplyToSessionId, ContentType, TimeToLive, PartitionKey, ViaPartitionKey, ScheduledEnqueueTimeUtc, and user properties";
                    Err(self.error(at, problem.to_owned()))
                }
            },
            Property::Computed(_) => Err(self.unexpected("a name")),
        }
    }

    /// Takes an expression of operators that bind tighter than `power`.
    fn expression(&mut self, power: u8) -> Result<ExpressionNode, SqlError> {
        if limits::SQL_DEPTH_MAX <= self.depth {
            let problem = format!(
                "the expression is nested more than {} deep",
                limits::SQL_DEPTH_MAX
            );
            return Err(self.error(self.place(), problem));
        }
        self.depth += 1;
        let mut left = self.prefix()?;
        while let Some((infix, words)) = self.infix() {
            let binds = infix.power();
            if binds < power {
                break;
            }
            let operator = self.place();
            self.at += words;
            left = self.join(left, infix, operator)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Returns the operator that comes next, and how many words it has.
    fn infix(&self) -> Option<(Infix, usize)> {
        let negated = |kind: &TokenKind| match kind {
            TokenKind::Keyword(Keyword::In) => Some((Infix::In { negated: true }, 2)),
            TokenKind::Keyword(Keyword::Like) => Some((Infix::Like { negated: true }, 2)),
            _ => None,
        };
        let infix = match self.peek() {
            TokenKind::Keyword(Keyword::And) => Infix::And,
            TokenKind::Keyword(Keyword::In) => Infix::In { negated: false },
            TokenKind::Keyword(Keyword::Is) => Infix::IsNull,
            TokenKind::Keyword(Keyword::Like) => Infix::Like { negated: false },
            TokenKind::Keyword(Keyword::Not) => return negated(self.peek_behind()),
            TokenKind::Keyword(Keyword::Or) => Infix::Or,
            TokenKind::Symbol(symbol) => match *symbol {
                "=" => Infix::Comparison(Comparison::Equal),
                "<>" | "!=" => Infix::Comparison(Comparison::NotEqual),
                "<" => Infix::Comparison(Comparison::Less),
                "<=" => Infix::Comparison(Comparison::LessOrEqual),
                ">" => Infix::Comparison(Comparison::Greater),
                ">=" => Infix::Comparison(Comparison::GreaterOrEqual),
                "+" => Infix::Arithmetic(Arithmetic::Add, power::SUM),
                "-" => Infix::Arithmetic(Arithmetic::Subtract, power::SUM),
                "*" => Infix::Arithmetic(Arithmetic::Multiply, power::PRODUCT),
                "/" => Infix::Arithmetic(Arithmetic::Divide, power::PRODUCT),
                "%" => Infix::Arithmetic(Arithmetic::Remainder, power::PRODUCT),
                _ => return None,
            },
            _ => return None,
        };
        Some((infix, 1))
    }

    /// Takes the right operand of an operator, and joins it to the left one.
    fn join(
        &mut self,
        left: ExpressionNode,
        infix: Infix,
        operator: usize,
    ) -> Result<ExpressionNode, SqlError> {
        let at = left.at;
        let right = infix.power() + 1;
        let (expression, is_condition) = match infix {
            Infix::And => {
                let both = Box::new((self.into_condition(left)?, self.right_condition(right)?));
                (Expression::And(both), true)
            }
            Infix::Or => {
                let both = Box::new((self.into_condition(left)?, self.right_condition(right)?));
                (Expression::Or(both), true)
            }
            Infix::Arithmetic(arithmetic, _) => {
                let both = Box::new((self.into_operand(left, operator)?, self.operand(right)?));
                (Expression::Arithmetic(arithmetic, both), false)
            }
            Infix::Comparison(comparison) => {
                let both = Box::new((self.into_operand(left, operator)?, self.operand(right)?));
                (Expression::Compare(comparison, both), true)
            }
            Infix::In { negated } => {
                let value = Box::new(self.into_operand(left, operator)?);
                let list = self.list()?;
                (
                    Expression::In {
                        negated,
                        value,
                        list,
                    },
                    true,
                )
            }
            Infix::IsNull => {
                let negated = self.take_keyword(Keyword::Not);
                if !self.take_keyword(Keyword::Null) {
                    return Err(self.unexpected("NULL or NOT NULL"));
                }
                let Expression::Property(property) = left.expression else {
                    return Err(self.error(at, "IS NULL asks about a property".to_owned()));
                };
                (Expression::IsNull { negated, property }, true)
            }
            Infix::Like { negated } => {
                let value = self.into_operand(left, operator)?;
                let pattern = self.operand(right)?;
                let escape = if self.take_keyword(Keyword::Escape) {
                    Some(self.escape(right)?)
                } else {
                    None
                };
                let operands = LikeOperands {
                    value,
                    pattern,
                    escape,
                };
                let operands = Box::new(operands);
                (Expression::Like { negated, operands }, true)
            }
        };
        Ok(ExpressionNode {
            expression,
            is_condition,
            at,
        })
    }

    fn escape(&mut self, power: u8) -> Result<Expression, SqlError> {
        let at = self.place();
        let escape = self.operand(power)?;
        match &escape {
            Expression::Constant(Scalar::Text(text)) if text.chars().count() != 1 => Err(self
                .error(
                    at,
                    "ESCAPE wants a text of one character, as in ESCAPE '\\'".to_owned(),
                )),
            _ => Ok(escape),
        }
    }

    fn list(&mut self) -> Result<Vec<Expression>, SqlError> {
        self.expect_symbol("(")?;
        let mut list = Vec::new();
        loop {
            list.push(self.operand(power::COMPARISON + 1)?);
            if self.take_symbol(")") {
                return Ok(list);
            }
            if !self.take_symbol(",") {
                return Err(self.unexpected("',' or ')'"));
            }
        }
    }

    /// Takes an operand, or an expression that begins with an operator or a parenthesis.
    fn prefix(&mut self) -> Result<ExpressionNode, SqlError> {
        let at = self.place();
        let operand = |expression| ExpressionNode {
            expression,
            is_condition: false,
            at,
        };
        match self.peek().clone() {
            TokenKind::Double(value) => Ok(operand(self.constant(Scalar::Double(value)))),
            TokenKind::Integer(value) => {
                let value = i64::try_from(value).map(Scalar::Long);
                let value = value.map_err(|_| self.error(at, too_large("this number")))?;
                Ok(operand(self.constant(value)))
            }
            TokenKind::Text(text) => Ok(operand(self.constant(Scalar::Text(text.into())))),
            TokenKind::Keyword(Keyword::True) => Ok(operand(self.constant(Scalar::Boolean(true)))),
            TokenKind::Keyword(Keyword::False) => {
                Ok(operand(self.constant(Scalar::Boolean(false))))
            }
            TokenKind::Keyword(Keyword::Null) => Ok(operand(self.constant(Scalar::Null))),
            TokenKind::Keyword(Keyword::Not) => {
                self.at += 1;
                let inner = self.expression(power::NOT)?;
                let expression = Expression::Not(Box::new(self.into_condition(inner)?));
                Ok(ExpressionNode {
                    expression,
                    is_condition: true,
                    at,
                })
            }
            TokenKind::Keyword(Keyword::Exists) => {
                self.at += 1;
                self.expect_symbol("(")?;
                let inner = self.prefix()?;
                let Expression::Property(property) = inner.expression else {
                    return Err(self.error(inner.at, "EXISTS asks about a property".to_owned()));
                };
                self.expect_symbol(")")?;
                let expression = Expression::Exists(property);
                Ok(ExpressionNode {
                    expression,
                    is_condition: true,
                    at,
                })
            }
            TokenKind::Parameter(name) => {
                self.at += 1;
                Ok(operand(self.parameter(name)))
            }
            TokenKind::Symbol("(") => {
                self.at += 1;
                let inner = self.expression(0)?;
                self.expect_symbol(")")?;
                Ok(ExpressionNode { at, ..inner })
            }
            TokenKind::Symbol("-") => self.sign(Sign::Minus).map(operand),
            TokenKind::Symbol("+") => self.sign(Sign::Plus).map(operand),
            TokenKind::Word(name) if *self.peek_behind() == TokenKind::Symbol("(") => {
                self.function(&name).map(operand)
            }
            TokenKind::Quoted(_) | TokenKind::Word(_) => {
                let (property, _) = self.name()?;
                Ok(operand(Expression::Property(property)))
            }
            TokenKind::End | TokenKind::Keyword(_) | TokenKind::Symbol(_) => {
                Err(self.unexpected("a property, a number, a 'text', or '('"))
            }
        }
    }

    fn sign(&mut self, sign: Sign) -> Result<Expression, SqlError> {
        self.at += 1;
        // The lowest integer has no positive counterpart.
        if sign == Sign::Minus && *self.peek() == TokenKind::Integer(i64::MIN.unsigned_abs()) {
            return Ok(self.constant(Scalar::Long(i64::MIN)));
        }
        let inner = self.operand(power::SIGN)?;
        Ok(Expression::Sign(sign, Box::new(inner)))
    }

    fn function(&mut self, name: &str) -> Result<Expression, SqlError> {
        let at = self.place();
        self.at += 2;
        let expression = if same_name(name, "newid") {
            Expression::NewId
        } else if same_name(name, "property") || same_name(name, "p") {
            let inner = self.operand(power::COMPARISON + 1)?;
            Expression::Property(Property::Computed(Box::new(inner)))
        } else {
            let problem = format!(
                "there is no function {name}(): there are newid(), property(name) and p(name)"
            );
            return Err(self.error(at, problem));
        };
        self.expect_symbol(")")?;
        Ok(expression)
    }

    /// Takes the name of a property, with its scope.
    fn name(&mut self) -> Result<(Property, usize), SqlError> {
        let at = self.place();
        let (first, is_word) = self.identifier()?;
        if !self.take_symbol(".") {
            return Ok((Property::User(first), at));
        }
        let (name, _) = self.identifier()?;
        if is_word && same_name(&first, "user") {
            return Ok((Property::User(name), at));
        }
        if !is_word || !same_name(&first, "sys") {
            let problem = format!(
                "'{first}' is no scope: the scopes are sys and user; quote a name with a point in brackets, as in [{first}.{name}]"
            );
            return Err(self.error(at, problem));
        }
        let system = System::named(&name);
        let system = system.ok_or_else(|| {
            self.error(at, format!("there is no system property '{name}'; a property of the sender's own has no scope, or user."))
        })?;
        Ok((Property::System(system), at))
    }

    fn identifier(&mut self) -> Result<(String, bool), SqlError> {
        let found = match self.peek().clone() {
            TokenKind::Quoted(name) => (name, false),
            TokenKind::Word(name) => (name, true),
            TokenKind::Keyword(keyword) => {
                let name = keyword.name();
                return Err(self.unexpected(&format!(
                    "the name of a property (quote one called {name} in brackets: [{name}])"
                )));
            }
            _ => return Err(self.unexpected("the name of a property")),
        };
        self.at += 1;
        Ok(found)
    }

    fn parameter(&self, name: String) -> Expression {
        let bare = |name: &'a str| name.strip_prefix('@').unwrap_or(name);
        let mut given = self.parameters.iter();
        let wanted = name.strip_prefix('@').unwrap_or(&name);
        let found = given.find(|(given, _)| same_name(bare(given), wanted));
        found.map_or(Expression::Missing(name), |(_, value)| {
            Expression::Constant(value.scalar().clone())
        })
    }

    fn constant(&mut self, value: Scalar<'static>) -> Expression {
        self.at += 1;
        Expression::Constant(value)
    }

    /// Takes an operand that is bound tighter than `power`.
    fn operand(&mut self, power: u8) -> Result<Expression, SqlError> {
        let at = self.place();
        let node = self.expression(power)?;
        self.into_operand(node, at)
    }

    fn right_condition(&mut self, power: u8) -> Result<Expression, SqlError> {
        let node = self.expression(power)?;
        self.into_condition(node)
    }

    #[expect(
        clippy::wrong_self_convention,
        reason = "it is the node that goes into something"
    )]
    fn into_operand(&self, node: ExpressionNode, at: usize) -> Result<Expression, SqlError> {
        if node.is_condition {
            let problem = "a condition is used as a value: join conditions with AND or OR";
            return Err(self.error(at, problem.to_owned()));
        }
        Ok(node.expression)
    }

    #[expect(
        clippy::wrong_self_convention,
        reason = "it is the node that goes into something"
    )]
    fn into_condition(&self, node: ExpressionNode) -> Result<Expression, SqlError> {
        let could_be = match &node.expression {
            Expression::Constant(value) => matches!(value, Scalar::Boolean(_) | Scalar::Null),
            Expression::Arithmetic(..) | Expression::NewId | Expression::Sign(..) => false,
            _ => true,
        };
        if could_be {
            return Ok(node.expression);
        }
        let problem = "a value is used as a condition: compare it, as in 'price > 10'";
        Err(self.error(node.at, problem.to_owned()))
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        self.take(&TokenKind::Keyword(keyword))
    }

    fn take_symbol(&mut self, symbol: &'static str) -> bool {
        self.take(&TokenKind::Symbol(symbol))
    }

    fn take(&mut self, kind: &TokenKind) -> bool {
        let found = self.peek() == kind;
        self.at += usize::from(found);
        found
    }

    fn expect_symbol(&mut self, symbol: &'static str) -> Result<(), SqlError> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("'{symbol}'")))
    }

    fn peek(&self) -> &TokenKind {
        self.token(self.at)
    }

    fn peek_behind(&self) -> &TokenKind {
        self.token(self.at + 1)
    }

    fn token(&self, at: usize) -> &TokenKind {
        self.tokens
            .get(at)
            .map_or(&TokenKind::End, |token| &token.kind)
    }

    /// Returns where the next word begins.
    fn place(&self) -> usize {
        self.tokens
            .get(self.at)
            .map_or(self.text.len(), |token| token.at)
    }

    fn unexpected(&self, wanted: &str) -> SqlError {
        let found = self.peek().describe();
        self.error(self.place(), format!("expected {wanted}, found {found}"))
    }

    fn error(&self, at: usize, problem: String) -> SqlError {
        SqlError::new(self.text, at, problem)
    }
}

impl Infix {
    const fn power(&self) -> u8 {
        match self {
            Self::Or => power::OR,
            Self::And => power::AND,
            Self::Comparison(_) | Self::In { .. } | Self::IsNull | Self::Like { .. } => {
                power::COMPARISON
            }
            Self::Arithmetic(_, power) => *power,
        }
    }
}
