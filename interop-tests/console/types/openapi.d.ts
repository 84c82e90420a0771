// Written by generate.mjs; do not edit.

export interface paths {
    "/api/v1/access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says who the client is, and what it may do in the namespace. */
        get: operations["get_access"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/attention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells what needs attention, the most urgent first. */
        get: operations["get_attention"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the last administrative operations in the namespace. Needs `Manage`. */
        get: operations["list_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follows the changes of the namespace as server-sent events: `entity`, `job` and `connection` with the newest state of one,
         *     `entity_deleted`, `job_forgotten` and `connection_closed`; `attention` with all that needs attention, and `attention_unknown` if
         *     that is not known any more. `current` ends what changed at one time, and has the id. `reset`
         *     says that all that is known is to be forgotten: the whole state follows.
         */
        get: operations["follow_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the entities of the namespace as a `Config.json` of the emulator, which a broker can be started with. */
        get: operations["get_configuration"];
        /**
         * Makes and changes the entities that a `Config.json` of the emulator names. Other entities stay as they are, and so do the
         *     keys of the namespace. If the file has several namespaces, it is the one with the name of this namespace that counts.
         */
        put: operations["put_configuration"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/connections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the connections of the namespace with their links. */
        get: operations["list_connections"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/connections/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Closes a connection. Its client may connect again. */
        delete: operations["close_connection"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/connections/{id}/links/{link}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Detaches a link. Its client may attach it again. */
        delete: operations["close_link"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the entities of one kind, in the order of their names. */
        get: operations["list_entities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns an entity. */
        get: operations["get_entity"];
        /** Makes an entity, or with `If-Match` replaces the properties of one. */
        put: operations["put_entity"];
        post?: never;
        /** Deletes an entity with all its messages; a topic with its subscriptions. */
        delete: operations["delete_entity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/authorization-rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the authorization rules of a queue or a topic, with their keys. */
        get: operations["list_authorization_rules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/authorization-rules/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Makes an authorization rule, or changes its rights and keys. */
        put: operations["put_authorization_rule"];
        post?: never;
        /** Deletes an authorization rule. What its keys have granted ends when the tokens that were made with them do. */
        delete: operations["delete_authorization_rule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/authorization-rules/{name}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replaces a key of an authorization rule by a random one, and returns the rule. To change the key of clients that run,
         *     rotate the secondary key, give it to them, and then rotate the primary one.
         */
        post: operations["rotate_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Groups dead letters by reason and description: up to 10,000 messages in one answer. */
        get: operations["group_dead_letters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the history of an entity. */
        get: operations["get_entity_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/lock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Locks active or deferred messages by their numbers, and returns them: all of them, or none if one cannot be locked. The
         *     locks last as long as those of receivers. A message that is not settled until then counts a failed delivery; a deferred one
         *     stays deferred.
         */
        post: operations["lock_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Looks at messages of one queue. Nothing changes. */
        get: operations["list_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/messages/{number}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Looks at one message. */
        get: operations["get_message"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/rule-tests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Tests a message against the rules of a subscription, or of all subscriptions of a topic. Nothing is sent. Facts that a topic
         *     adds, such as the sequence number, are those of no message.
         */
        post: operations["test_rules"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the rules of a subscription. */
        get: operations["list_rules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/rules/{rule}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a rule. */
        get: operations["get_rule"];
        /** Makes a rule, or with `If-Match` replaces one. */
        put: operations["put_rule"];
        post?: never;
        /** Deletes a rule. */
        delete: operations["delete_rule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/schedule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts scheduled messages by the time when they become active. */
        get: operations["count_scheduled"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/send": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends messages to a queue or a topic, at once or for a later time: all of them, or none. A body of the type
         *     `application/octet-stream` is one message as AMQP encodes it, as large as the entity allows.
         */
        post: operations["send_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists message sessions that have messages or a state. */
        get: operations["list_sessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a message session with its state. */
        get: operations["get_session"];
        /** Sets or clears the state of a message session, also while a receiver holds it. */
        put: operations["set_session_state"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/entities/{entity}/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Settles locked messages, whichever client has locked them. Each has a result of its own. */
        post: operations["settle_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/fleet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the servers that share the store, and the namespaces. Only the operator may. */
        get: operations["get_fleet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/fleet/namespaces/{name}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends the quarantine of a namespace: a server takes it within a second. What put it there may do so again. Only the operator
         *     may. It is in the log of the server that answers; the audit log is the namespace's own, which no server has at that time.
         */
        post: operations["release_namespace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the history of the namespace. */
        get: operations["get_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the jobs of the namespace: those that run, and the last hundred of each shard. */
        get: operations["list_jobs"];
        put?: never;
        /** Begins a job. Messages that come later are not changed, nor those that a receiver has locked. */
        post: operations["start_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Counts the messages that a job with this selection would change, as they are now. Nothing changes. */
        post: operations["count_selection"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a job. */
        get: operations["get_job"];
        put?: never;
        post?: never;
        /** Cancels a job. The changes that it has made stay. */
        delete: operations["cancel_job"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Searches all queues of the namespace, dead letters among them. */
        get: operations["search_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/namespaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the namespaces of the server. Only the operator may. */
        get: operations["list_namespaces"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/namespaces/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Makes a namespace, in the shard with the fewest. The root key of the server is good in it, if there is one. With a
         *     `Config.json` of the emulator as the body it has the entities of that: if one of them cannot be made, there is no namespace.
         *     Only the operator may.
         */
        put: operations["create_namespace"];
        post?: never;
        /** Deletes a namespace with all its entities and messages, and closes its connections. Only the operator may. */
        delete: operations["delete_namespace"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/receives": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the receives over HTTP of the namespace that wait for a message. */
        get: operations["list_receives"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/receives/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a receive over HTTP that waits for a message: it is answered with status 503. Its client may receive again. */
        delete: operations["end_receive"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/server": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes the server. Only the operator may. */
        get: operations["get_server"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/server/backups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes a backup of the data directory, and answers when it is durable. Only the operator may. A server whose namespaces are in
         *     a store refuses it: the database is backed up.
         */
        post: operations["create_backup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/trends": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns how the messages of the namespace's entities have changed over the last hour and day. */
        get: operations["list_trends"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A client, and what it may do. */
        Access: {
            /** @description As the audit log names it: `operator`, `key NAME`, `identity SUBJECT`, or `anyone` if no credentials are verified. */
            actor: string;
            /** @description The server shares its namespaces with others, in a store. */
            fleet: boolean;
            /** @description The namespace, in lower case. */
            namespace: string;
            /** @description All namespaces, for the operator. */
            namespaces?: string[] | null;
            /** @description Any key is accepted (the development profile). */
            open: boolean;
            /** @description It may do everything, in every namespace. */
            operator: boolean;
            /** @description What it may do in the whole namespace. */
            rights: components["schemas"]["RightName"][];
            /** @description The version of the broker. */
            version: string;
        };
        /** @description What is done to each message. */
        Action: {
            /** @enum {string} */
            kind: "delete";
        } | {
            /**
             * @description Statements that change its properties first, as the action of a rule does.
             * @example SET color = 'red'; REMOVE attempts
             */
            action?: string | null;
            /**
             * @description A template of its new body. `{{body}}` is the body, `{{body:/a/0}}` what a JSON pointer finds in it, as JSON, and
             *     `{{property:NAME}}` an application-property.
             * @example {"amount": 1.5, "customer": {{body:/customer}}}
             */
            body?: string | null;
            /** @enum {string} */
            kind: "move";
            /** @description The path of the queue, the topic or the subscription that gets it; without one, where it was dead-lettered. */
            to?: string | null;
        } | {
            description?: string | null;
            /** @enum {string} */
            kind: "dead_letter";
            reason?: string | null;
        } | {
            /** @enum {string} */
            kind: "activate";
        } | {
            /** @enum {string} */
            kind: "reschedule";
            /** @example 2026-11-23T12:00:00Z */
            scheduled_for: string;
        };
        /** @description The changes that a configuration has made. */
        Applied: {
            changed: number;
            made: number;
            /** @description A sentence for each entity that could not be made or changed. */
            refused: string[];
            /** @description A sentence for each name or value of the file that has no effect. */
            warnings?: string[];
        };
        /** @description What needs attention in the namespace, or with one entity. */
        Attention: {
            /** @description How many there are of each kind, those that are left out among them; kinds of which there is none are absent. */
            counts: components["schemas"]["AttentionCount"][];
            /** @description The most urgent items, 200 at most. */
            items: components["schemas"]["AttentionItem"][];
            /** @description Items that are left out. */
            left_out: number;
            /** @description When the broker looked: a second ago at most, or just now. */
            looked_at: string;
        };
        /** @description How many items there are of a kind. */
        AttentionCount: {
            count: number;
            kind: components["schemas"]["AttentionKind"];
        };
        /** @description Something that needs attention. */
        AttentionItem: {
            /** @description The container-id of that connection. */
            client?: string | null;
            /**
             * Format: int32
             * @description The connection of a receiver, if it has one.
             */
            connection?: number | null;
            /**
             * Format: int64
             * @description How much: of messages, locks or receivers how many, of a limit the percentage that is used.
             */
            count: number;
            /** @description The path of the entity; absent if the namespace is meant. */
            entity?: string | null;
            /**
             * @description Tells it from the others, for as long as it holds: its kind, its receiver or job, and its entity.
             * @example no_receiver::orders
             */
            id: string;
            /**
             * Format: int64
             * @description The id of a job.
             */
            job?: number | null;
            kind: components["schemas"]["AttentionKind"];
            /**
             * Format: int32
             * @description The id of the receiver's link on that connection.
             */
            link?: number | null;
            /** @description When it began; absent if it held already when the broker looked for the first time since its start. */
            since?: string | null;
            /** @description A sentence that says it. */
            text: string;
            urgency: components["schemas"]["Urgency"];
        };
        /**
         * @description What needs attention.
         * @enum {string}
         */
        AttentionKind: "messages_refused" | "stuck_receiver" | "recent_dead_letters" | "forwarding_failed" | "forwarding_blocked" | "entity_full" | "namespace_near_limit" | "disabled_with_messages" | "job_failed" | "locks_expire" | "transfer_dead_letters" | "dead_letters" | "no_receiver" | "old_lock" | "job_skipped";
        /** @description What needs attention in the namespace, as the event `attention` has it: all of it, whenever some has changed. */
        AttentionNow: {
            /** @description How many there are of each kind. */
            counts: components["schemas"]["AttentionCount"][];
            /** @description The most urgent items, 50 at most. */
            items: components["schemas"]["AttentionItem"][];
            /** @description Items that are left out. */
            left_out: number;
        };
        /** @description Entries of the audit log, the newest first. */
        AuditLog: {
            entries: components["schemas"]["Entry"][];
            /**
             * Format: int64
             * @description What `before` is to be for the next page; without it there is none.
             */
            next_before?: number | null;
        };
        /** @description An authorization rule to be made or changed. */
        AuthorizationRuleRequest: {
            /** @description Without it, the rule keeps its key, or a new rule gets a random one. */
            primary_key?: string | null;
            rights: components["schemas"]["RightName"][];
            /** @description Likewise. */
            secondary_key?: string | null;
        };
        /** @description An authorization rule with its keys. */
        AuthorizationRuleShown: {
            created_at?: string | null;
            modified_at?: string | null;
            name: string;
            primary_key: string;
            rights: components["schemas"]["RightName"][];
            secondary_key?: string | null;
        };
        /** @description Authorization rules. */
        AuthorizationRules: {
            authorization_rules: components["schemas"]["AuthorizationRuleShown"][];
        };
        /** @description A backup that was made. */
        BackupMade: {
            /** Format: int64 */
            bytes: number;
            /** Format: int64 */
            copied_bytes: number;
            /**
             * Format: int64
             * @description How many of them are new, and their bytes.
             */
            copied_files: number;
            directory: string;
            /** @description How many files it has, and their bytes. */
            files: number;
            /** @description When it was begun: all that was acknowledged before is in it. */
            made_at: string;
            shards: components["schemas"]["ShardBackup"][];
        };
        /** @description Where a backup is made. */
        BackupRequest: {
            /**
             * @description A directory on the broker's machine, as an absolute path: a new one, or one with a backup of this broker, which is
             *     replaced. Files that it has are not copied again.
             */
            directory: string;
        };
        /** @description The body of a message. */
        BodyContent: {
            /** @description The bytes in base64, if it is not. */
            base64?: string | null;
            decoded?: components["schemas"]["DecodedContent"] | null;
            /** @description Its bytes. */
            size_bytes: number;
            /** @description The text, if the body is UTF-8. */
            text?: string | null;
            /** @description Only the beginning is shown. */
            truncated?: boolean;
        };
        /**
         * @description How much is shown of bodies.
         * @enum {string}
         */
        BodyShown: "none" | "preview" | "full";
        /** @description A number of messages, and how it has changed. */
        ChangeShown: {
            /**
             * Format: int64
             * @description The number of now less that of a day ago, or of `since`.
             */
            day: number;
            /**
             * Format: int64
             * @description The number of now less that of an hour ago, or of `since` if that is later.
             */
            hour: number;
            /** @description The numbers of 24 hours, at the end of each and the oldest first; null where no broker looked. The last is that of now. */
            hours: (number | null)[];
            /** Format: int32 */
            now: number;
        };
        /**
         * @description The result of a condition.
         * @enum {string}
         */
        ConditionResult: "true" | "false" | "unknown" | "failed";
        /** @description A `Config.json` of the emulator. */
        ConfigJson: Record<string, never>;
        /** @description A connection. */
        Connection: {
            /** @description It was authorized for something. */
            authorized: boolean;
            /** @description The container-id of its `open`, which SDKs let applications choose; its first 256 characters. */
            container_id: string;
            /** @description The host by which it calls the namespace. */
            host: string;
            /** Format: int32 */
            id: number;
            /** @description Whose credentials it has shown: `key NAME`, `identity SUBJECT`; none if none were verified. */
            identities: string[];
            links: components["schemas"]["Link"][];
            /** @description When its `open` came. */
            opened_at: string;
            /** @description Its address; of IPv6 the network. */
            peer: string;
            /**
             * Format: int32
             * @description Its port; absent if another server has passed the connection on.
             */
            port?: number | null;
            /** @description The client library that its `open` names; its first 128 characters. */
            product?: string;
            /** @description It came over TLS. */
            secure: boolean;
            /** @description The version of that library, likewise. */
            version?: string;
        };
        /** @description Connections of a namespace, in the order of their ids. */
        Connections: {
            /** @description Written one by one, before the rest. */
            connections: components["schemas"]["Connection"][];
            /**
             * @description What `from` is to be for the next page; without it there is none. A page has up to 1,000 links: a connection that has
             *     more is in the next page again, with further links.
             * @example 17.1001
             */
            next?: string | null;
        };
        /** @description Values that a correlation filter compares. */
        Correlation: {
            /** @default null */
            content_type: string | null;
            /** @default null */
            correlation_id: string | null;
            /** @default null */
            message_id: string | null;
            /**
             * @description Texts, numbers, booleans.
             * @default {}
             */
            properties: {
                [key: string]: unknown;
            };
            /** @default null */
            reply_to: string | null;
            /** @default null */
            reply_to_session_id: string | null;
            /** @default null */
            session_id: string | null;
            /** @default null */
            subject: string | null;
            /** @default null */
            to: string | null;
        };
        /** @description A selection whose messages are counted. */
        CountRequest: {
            /**
             * @description The path of a queue, a topic, a subscription, or one of their sub-queues.
             * @example orders/$DeadLetterQueue
             */
            entity: string;
            /**
             * Format: int64
             * @description The first sequence number to look at: `next` of the answer before.
             */
            from?: number;
            selection?: components["schemas"]["MessageSelection"];
        };
        /** @description Messages of an entity by state. */
        Counts: {
            /** @description Those that receivers may get, locked ones among them; not those that are deferred. */
            active: number;
            dead_letters: number;
            /** @description Those that are received by their numbers only. */
            deferred: number;
            /** @description Those, active or deferred, that receivers have locked. */
            locked: number;
            scheduled: number;
            /** @description On their way to the entity that this one forwards to. */
            transfer: number;
            /** @description Those that could not go there. */
            transfer_dead_letters: number;
        };
        /** @description The data directory. */
        Data: {
            directory: string;
            /**
             * Format: int64
             * @description Bytes of its file system, and those that are free.
             */
            disk_bytes?: number | null;
            /** Format: int64 */
            free_bytes?: number | null;
        };
        /** @description Why a message was dead-lettered. */
        DeadLetter: {
            description?: string | null;
            reason?: string | null;
            /** @description The entity whose dead letter it was, if it was forwarded from there. */
            source?: string | null;
        };
        /** @description Dead letters with one reason and description. */
        DeadLetterGroup: {
            description?: string | null;
            /** Format: int64 */
            first_number: number;
            /** Format: int64 */
            last_number: number;
            messages: number;
            reason?: string | null;
        };
        /** @description Dead letters by reason. */
        DeadLetterGroups: {
            groups: components["schemas"]["DeadLetterGroup"][];
            /** @description Messages that were looked at. */
            messages: number;
            /**
             * Format: int64
             * @description What `from` is to be to continue; without it, all were looked at.
             */
            next?: number | null;
        };
        /** @description The content of a compressed body. */
        DecodedContent: {
            /** @description The bytes in base64, if it is not. */
            base64?: string | null;
            /**
             * @description How it is compressed: `gzip`, `deflate`, `zip` (the first file), or `brotli` if the application-property
             *     `content-encoding` says `br`.
             */
            format: string;
            /** @description The text, if the content is UTF-8. */
            text?: string | null;
            /** @description Only the first 256 KiB are shown. */
            truncated?: boolean;
        };
        /** @description Entities of one kind. */
        Entities: {
            entities: components["schemas"]["Entity"][];
            /** @description What `skip` is to be for the next page; without it there is none. */
            next_skip?: number | null;
        };
        /** @description A queue, a topic or a subscription. */
        Entity: {
            /** @description When a client last used it, since the broker started. */
            accessed_at?: string | null;
            counts: components["schemas"]["Counts"];
            created_at: string;
            kind: components["schemas"]["Kind"];
            /** @description Its path: `orders`, `news/Subscriptions/eu`. */
            path: string;
            properties: components["schemas"]["EntityProperties"];
            rates?: components["schemas"]["RatesShown"] | null;
            /**
             * Format: int64
             * @description Bytes of its messages and dead letters, as their senders encoded them.
             */
            size_bytes: number;
            /** @description A topic's subscriptions. */
            subscriptions?: number | null;
            trend?: components["schemas"]["TrendShown"] | null;
            updated_at: string;
        };
        /** @description An entity as the event `entity` has it. Counts of what happened begin with the process. */
        EntityNow: {
            /** Format: int64 */
            abandoned: number;
            active: number;
            /**
             * Format: int64
             * @description Messages that were completed, or received and deleted.
             */
            completed: number;
            /** Format: int64 */
            dead_lettered: number;
            dead_letters: number;
            deferred: number;
            /**
             * Format: int64
             * @description Messages whose life ended, dead-lettered or not.
             */
            expired: number;
            /** @description Where its dead letters are forwarded to. */
            forward_dead_letters_to?: string | null;
            /** @description Where its messages are forwarded to. */
            forward_to?: string | null;
            /**
             * Format: int64
             * @description Messages that were forwarded or moved to another entity, and a topic's copies for its subscriptions.
             */
            forwarded: number;
            /** Format: int64 */
            incoming: number;
            kind: components["schemas"]["Kind"];
            /** @description Messages that receivers have locked, in whatever state. */
            locked: number;
            /** Format: int64 */
            locks_expired: number;
            /**
             * Format: int64
             * @description The sequence number of its next message; absent of a partitioned entity, whose partitions number by themselves.
             */
            next_number?: number | null;
            /** @description When the oldest message was enqueued that waits for a receiver. */
            oldest_enqueued_at?: string | null;
            path: string;
            receivers: number;
            /** @description Its messages belong to message sessions. */
            requires_session: boolean;
            scheduled: number;
            /** @description Message sessions that have messages, a state or a holder. */
            sessions: number;
            sessions_held: number;
            /** Format: int64 */
            size_bytes: number;
            /** @description What clients may do with it. */
            status: components["schemas"]["EntityStatus"];
            /** @description Messages that a transaction sent by way of it, and their target refused. */
            transfer_dead_letters: number;
            /**
             * Format: int64
             * @description Messages of a topic that no subscription took.
             */
            unmatched: number;
        };
        /** @description Properties of an entity. What is left out of a request has the service's default. Times are ISO 8601 durations. */
        EntityProperties: {
            /**
             * @default null
             * @example P1D
             */
            auto_delete_on_idle: string | null;
            /**
             * @description Kept and returned, without an effect.
             * @default null
             */
            batched_operations: boolean | null;
            /** @default null */
            dead_letter_on_expiration: boolean | null;
            /** @default null */
            dead_letter_on_filter_error: boolean | null;
            /**
             * @default null
             * @example P14D
             */
            default_time_to_live: string | null;
            /**
             * @default null
             * @example PT10M
             */
            duplicate_detection_window: string | null;
            /**
             * @description Likewise.
             * @default null
             */
            express: boolean | null;
            /** @default null */
            forward_dead_letters_to: string | null;
            /** @default null */
            forward_to: string | null;
            /**
             * @default null
             * @example PT1M
             */
            lock_duration: string | null;
            /**
             * Format: int32
             * @default null
             */
            max_delivery_count: number | null;
            /**
             * Format: int64
             * @default null
             */
            max_message_kilobytes: number | null;
            /**
             * Format: int64
             * @default null
             */
            max_size_megabytes: number | null;
            /** @default null */
            partitioned: boolean | null;
            /** @default null */
            requires_duplicate_detection: boolean | null;
            /** @default null */
            requires_session: boolean | null;
            /** @default null */
            status: components["schemas"]["EntityStatus"] | null;
            /**
             * @description Likewise, of topics.
             * @default null
             */
            supports_ordering: boolean | null;
            /** @default null */
            user_metadata: string | null;
        };
        /** @description An entity to be made or changed. */
        EntityRequest: {
            kind: components["schemas"]["Kind"];
            properties?: components["schemas"]["EntityProperties"];
            rule?: components["schemas"]["FirstRule"] | null;
        };
        /**
         * @description What an entity's status allows.
         * @enum {string}
         */
        EntityStatus: "active" | "disabled" | "receive_disabled" | "send_disabled";
        /** @description The change of an entity. */
        EntityTrend: {
            /** @description Its path in lower case. */
            path: string;
            trend: components["schemas"]["TrendShown"];
        };
        /** @description An administrative operation that was carried out. */
        Entry: {
            /**
             * @description `operator`, `key NAME`, `identity SUBJECT`, `client CONTAINER-ID` of a connection, or `the configuration file`; `anyone` if
             *     no credentials are verified.
             */
            actor: string;
            /** @description When it was carried out, the first time if it was repeated. */
            at: string;
            /**
             * Format: int64
             * @description How often: equal operations within ten seconds are one entry.
             */
            count?: number | null;
            /** @description What it changed. Keys are left out. */
            detail?: string;
            /** @description The path of the entity; absent if it is about none. */
            entity?: string;
            /** @description When it was carried out last, if it was repeated. */
            last_at?: string | null;
            /** Format: int64 */
            number: number;
            /** @example update */
            operation: string;
            /** @description The address of the client; of IPv6 the network. */
            peer?: string;
        };
        /** @description The first rule of a subscription. */
        FirstRule: {
            action?: string | null;
            filter: components["schemas"]["RuleFilter"];
            name: string;
        };
        /** @description The configuration that all servers apply. */
        FleetConfiguration: {
            /** @description The SHA-256 of its text; absent if no server was started with a file. */
            hash?: string | null;
            /**
             * Format: int64
             * @description It grows with each change; 0 if no server was started with a file.
             */
            number: number;
        };
        /** @description A namespace in the store. */
        FleetNamespace: {
            /**
             * Format: int64
             * @description How often it was taken over, or taken anew.
             */
            epoch: number;
            name: string;
            /**
             * @description Why it is left alone: its log cannot be served, or its servers have died too often. In the second case it is tried again after a
             *     pause.
             */
            quarantined?: string | null;
            /**
             * Format: int64
             * @description Bytes a second that its clients may send together; absent without a quota.
             */
            quota?: number | null;
            /**
             * Format: int64
             * @description Messages a second that came and were handed out, of late: namespaces are spread by it.
             */
            rate: number;
            /** @description The server that has it; absent while none has. */
            server?: string | null;
            /** @description The name of the store that it is in. */
            store: string;
            /**
             * @description Why its server answers nothing about it at the moment; absent if it does. The server that answers knows of a missing answer of
             *     the database only for its own namespaces.
             */
            suspended?: string | null;
        };
        /** @description A server of the fleet. */
        FleetServer: {
            /** @description Where the other servers reach it. */
            address: string;
            /** @description Its beat is seen; otherwise it has left, or was declared dead because its beat did not come. */
            alive: boolean;
            /**
             * Format: int64
             * @description How long ago its beat changed, as the server that answers has seen it, in milliseconds; after 3,000 it is declared dead. Absent if it is not alive.
             */
            beat_age_ms?: number | null;
            /**
             * Format: int64
             * @description How often it has said that it is alive, since its start.
             */
            beats: number;
            /** @description It was told to stop: it gives its namespaces away and takes none, or it has left. */
            leaving: boolean;
            name: string;
            /** @description How many namespaces it has. */
            namespaces: number;
            /**
             * @description Why it takes no namespaces of some store: its clock is off, or it rests after deaths or late beats. Absent if it takes some, or is
             *     not alive.
             */
            takes_none?: string | null;
        };
        /** @description The servers that share stores. */
        FleetShown: {
            configuration: components["schemas"]["FleetConfiguration"];
            /** @description It may answer clients of all stores: its last beats are young enough. */
            lease_held: boolean;
            /**
             * Format: int64
             * @description How long ago it looked at the stores, in milliseconds; of several, at the one whose last look is the oldest. Absent before all were
             *     looked at.
             */
            looked_ms_ago?: number | null;
            namespaces: components["schemas"]["FleetNamespace"][];
            /** @description The server that answers. */
            server: string;
            servers: components["schemas"]["FleetServer"][];
            stores: components["schemas"]["FleetStore"][];
        };
        /** @description A database with namespaces. */
        FleetStore: {
            /**
             * Format: int64
             * @description By how much the clock of the server that answers is ahead of the database's, in milliseconds. Beyond a second it is not followed,
             *     and the server takes no namespaces.
             */
            clock_offset_ms: number;
            /** @description The random identity that the store got when it was made, or restored to an earlier point in time; empty if it was never reached. */
            identity: string;
            /**
             * Format: int64
             * @description Replication slots that no standby uses: they keep the database's log for ever.
             */
            inactive_slots: number;
            /** @description The server that answers may answer clients of the namespaces that it has there. */
            lease_held: boolean;
            /** @description What the servers call it. */
            name: string;
            /**
             * @description The host and the database, without the password.
             * @example db.example:5432/jitney
             */
            place: string;
            /** @description The last look at it has succeeded; otherwise what is said of it is older. */
            reached: boolean;
            /**
             * Format: int64
             * @description Bytes of the database's log that the standby which is furthest behind has not flushed; 0 where the role may not see that.
             */
            standby_lag_bytes: number;
            /**
             * Format: int64
             * @description Transactions since the oldest that the database has not frozen: at two billion it takes no writes.
             */
            transaction_age: number;
        };
        /** @description Messages that were found. */
        Found: {
            /** @description Written one by one, before the rest. */
            messages: components["schemas"]["FoundMessage"][];
            /**
             * Format: int64
             * @description What `from_number` is to be to continue.
             */
            next_number?: number | null;
            /**
             * @description What `from_queue` is to be to continue; without it, all queues were looked at. An answer may be empty and have it: one
             *     request looks at a bounded number of messages.
             */
            next_queue?: string | null;
            /**
             * Format: int64
             * @description Messages that are not here because evaluating `json_path` in their bodies takes too many steps.
             */
            undecided?: number;
        };
        /** @description A message that was found. */
        FoundMessage: {
            message: components["schemas"]["MessageShown"];
            /** @description The address of its queue: `orders`, `orders/$DeadLetterQueue`, `news/Subscriptions/eu`. */
            queue: string;
        };
        /** @description A time in which no broker looked. */
        GapShown: {
            from: string;
            until: string;
        };
        /**
         * @description How far back a history goes.
         * @enum {string}
         */
        HistoryRange: "hour" | "day" | "week";
        /** @description A part of a history, in intervals. */
        HistoryShown: {
            current?: components["schemas"]["PointShown"] | null;
            /** @description The times between points in which no broker looked: no broker ran, another server had the namespace, or the clock was set. */
            gaps: components["schemas"]["GapShown"][];
            /**
             * Format: int64
             * @description The length of an interval. One that the broker ended late is longer.
             */
            interval_seconds: number;
            /**
             * @description The intervals that have ended, the oldest first; none of an entity that was just made, or beyond the 1,000 entities that have
             *     a history.
             */
            points: components["schemas"]["PointShown"][];
            range: components["schemas"]["HistoryRange"];
            rates?: components["schemas"]["RatesShown"] | null;
        };
        /** @description A client that holds a lock. */
        Holder: {
            /** Format: int32 */
            connection: number;
            /** @description The container-id of its connection. */
            container_id: string;
            peer: string;
        };
        /** @description A job. */
        Job: {
            action: components["schemas"]["Action"];
            /**
             * Format: int64
             * @description Messages that were changed so far.
             */
            changed: number;
            created_at: string;
            ended_at?: string | null;
            /** @description The path of its queue: `orders`, `orders/$DeadLetterQueue`. */
            entity: string;
            /** @description Why it failed. */
            error?: string | null;
            /** Format: int64 */
            id: number;
            /** @description Why the last of these was. */
            last_skipped?: string | null;
            /** Format: int64 */
            limit?: number | null;
            /**
             * Format: int64
             * @description Messages that were selected so far.
             */
            matched: number;
            selection: components["schemas"]["MessageSelection"];
            /**
             * Format: int64
             * @description Messages that were left as they are.
             */
            skipped: number;
            state: components["schemas"]["RunState"];
            /**
             * Format: int64
             * @description Messages that there were when it began, or that its selection names by number: it looks at no others.
             */
            total?: number | null;
            /** @description Why it runs and does nothing, and what helps: the disk or the memory is full. */
            waits?: string | null;
        };
        /** @description A job to be begun. */
        JobRequest: {
            action: components["schemas"]["Action"];
            /**
             * @description The path of a queue, a topic, a subscription, or one of their sub-queues.
             * @example orders/$DeadLetterQueue
             */
            entity: string;
            /**
             * Format: int64
             * @description It ends when it has changed so many.
             */
            limit?: number | null;
            selection?: components["schemas"]["MessageSelection"];
        };
        /** @description Jobs, the newest first. */
        Jobs: {
            /** @description Written one by one, before the rest. */
            jobs: components["schemas"]["Job"][];
            /**
             * Format: int64
             * @description What `before` is to be for the next page; without it there is none.
             */
            next_before?: number | null;
        };
        /** @description A message in a queue. */
        KeptMessage: {
            /** @description The path of the queue, the topic, the subscription, or of one of their sub-queues. */
            entity: string;
            /** Format: int64 */
            sequence_number: number;
        };
        /**
         * @description A kind of entity.
         * @enum {string}
         */
        Kind: "queue" | "topic" | "subscription";
        /** @description A link. */
        Link: {
            /**
             * Format: int32
             * @description How many more messages a receiver takes.
             */
            credit?: number | null;
            /**
             * Format: int64
             * @description Deliveries since the attach: those that a sender has made, each with one message or a batch, or messages that were
             *     handed to a receiver.
             */
            deliveries?: number | null;
            /** @description The address of its entity; empty if it has none. */
            entity: string;
            /** Format: int32 */
            id: number;
            /**
             * @description Since when nothing has happened to a receiver: it was attached, its credit changed, a message was handed to it, or one
             *     of its locks ended.
             */
            idle_since?: string | null;
            /** @description How many messages a receiver has locked. */
            locked?: number | null;
            /**
             * @description When the oldest lock of a receiver was made; a renewal does not change it. It is absent if the receiver has none, or
             *     if the 20,000 oldest locks that a list looks at have none of it.
             */
            oldest_lock_at?: string | null;
            /**
             * Format: int64
             * @description The lowest sequence number of the messages that a receiver has locked.
             */
            oldest_locked?: number | null;
            role: components["schemas"]["Role"];
            /** @description The selector of a receiver: it takes only what matches. */
            selector?: string | null;
            /** @description The message session that a receiver holds. */
            session_id?: string | null;
            stuck?: components["schemas"]["StuckFor"] | null;
            /**
             * @description Messages that this receiver may get and that none has: of a message session those of the session, of a receiver that
             *     waits for a session those of all sessions that no receiver holds. It is not known, and absent, where a receiver has a
             *     selector or browses.
             */
            waiting?: number | null;
        };
        /** @description The lock of a message or of a message session. */
        Lock: {
            holder?: components["schemas"]["Holder"] | null;
            /** @description When it ends. */
            until?: string | null;
        };
        /** @description Messages to be locked. */
        LockRequest: {
            /** @description Their sequence numbers. */
            sequence_numbers: number[];
        };
        /** @description A locked message. */
        LockedMessage: components["schemas"]["MessageShown"] & {
            /** @description By this it is settled, here or by a client. */
            lock_token: string;
        };
        /** @description Which messages. */
        MessageSelection: {
            /** @default null */
            correlation_id: string | null;
            /**
             * @description The error description of a dead letter.
             * @default null
             */
            description: string | null;
            /**
             * @description Enqueued before this time.
             * @default null
             */
            enqueued_before: string | null;
            /**
             * @description Enqueued at this time or later.
             * @default null
             * @example 2026-11-23T12:00:00Z
             */
            enqueued_from: string | null;
            /**
             * @description A SQL filter over properties, as rules have.
             * @default null
             * @example color = 'red'
             */
            filter: string | null;
            /**
             * @description A `JSONPath` [RFC 9535] that finds something in the body, which must be JSON of at most a MiB.
             * @default null
             * @example $.order[?@.total > 100]
             */
            json_path: string | null;
            /** @default null */
            message_id: string | null;
            /**
             * @description Sequence numbers; none means all.
             * @default []
             */
            numbers: number[];
            /**
             * @description The reason of a dead letter.
             * @default null
             */
            reason: string | null;
            /**
             * @description Scheduled for a time before this.
             * @default null
             */
            scheduled_before: string | null;
            /**
             * @description Scheduled for this time or later.
             * @default null
             */
            scheduled_from: string | null;
            /** @default null */
            session_id: string | null;
            /**
             * @description States; none means all.
             * @default []
             */
            states: components["schemas"]["State"][];
            /**
             * @description A text that the body contains, within its first MiB.
             * @default null
             */
            text: string | null;
            /**
             * @description Those that have no error description of a dead letter.
             * @default false
             */
            without_description: boolean;
            /**
             * @description Those that have no reason of a dead letter.
             * @default false
             */
            without_reason: boolean;
        };
        /** @description A message. */
        MessageShown: {
            body?: components["schemas"]["BodyContent"] | null;
            content_type?: string | null;
            correlation_id?: string | null;
            /** @description Its bytes in the log are not what was written: it cannot be shown. */
            damaged?: boolean;
            dead_letter?: components["schemas"]["DeadLetter"] | null;
            /**
             * Format: int32
             * @description Deliveries that failed.
             */
            delivery_count: number;
            /** @description The message as AMQP encodes it, in base64. */
            encoded?: string | null;
            enqueued_at: string;
            /**
             * Format: int64
             * @description The number that it had before it was forwarded.
             */
            enqueued_sequence_number?: number | null;
            expires_at?: string | null;
            lock?: components["schemas"]["Lock"] | null;
            message_id?: string | null;
            partition_key?: string | null;
            /** @description Application-properties. */
            properties?: {
                [key: string]: unknown;
            } | null;
            /** @description Their types in AMQP: `string`, `long`, `timestamp`. */
            property_types?: {
                [key: string]: string;
            } | null;
            reply_to?: string | null;
            reply_to_session_id?: string | null;
            /** @description When a scheduled message becomes active. */
            scheduled_for?: string | null;
            /** Format: int64 */
            sequence_number: number;
            session_id?: string | null;
            /**
             * Format: int32
             * @description Bytes as its sender encoded it.
             */
            size_bytes: number;
            state: components["schemas"]["State"];
            subject?: string | null;
            /**
             * @description How long it lives from its arrival on, as an ISO 8601 duration; absent if for ever.
             * @example PT1H
             */
            time_to_live?: string | null;
            to?: string | null;
        };
        /** @description Messages of one queue, in the order of their numbers. */
        Messages: {
            /** @description Written one by one, before the rest. */
            messages: components["schemas"]["MessageShown"][];
            /**
             * Format: int64
             * @description What `from` is to be for the next page; without it there is none. A page may be empty and have a next one: a
             *     search looks at a bounded number of messages at a time.
             */
            next?: number | null;
            /**
             * Format: int64
             * @description Messages that are not here because evaluating `json_path` in their bodies takes too many steps.
             */
            undecided?: number;
        };
        /** @description A namespace. */
        Namespace: {
            /** @description The configuration names it: it cannot be dropped here. */
            configured: boolean;
            /** @description It answers to every host that is no other's. */
            first: boolean;
            /** @description Its name, in lower case: the first label of the host names that it answers to. */
            name: string;
            /**
             * Format: int32
             * @description The shard that it is in; absent if another server of the fleet serves it.
             */
            shard?: number | null;
        };
        /** @description The namespaces of the server. */
        NamespaceList: {
            namespaces: components["schemas"]["Namespace"][];
        };
        /** @description A message to be sent. */
        NewMessage: {
            /**
             * @description The body as a text.
             * @default null
             */
            body: string | null;
            /**
             * @description The body in base64, instead.
             * @default null
             */
            body_base64: string | null;
            /** @default null */
            content_type: string | null;
            /** @default null */
            correlation_id: string | null;
            /**
             * @description The whole message as AMQP encodes it, in base64, instead of everything else.
             * @default null
             */
            encoded: string | null;
            /** @default null */
            message_id: string | null;
            /** @default null */
            partition_key: string | null;
            /**
             * @description Application-properties: texts, numbers, booleans.
             * @default {}
             */
            properties: {
                [key: string]: unknown;
            };
            /** @default null */
            reply_to: string | null;
            /** @default null */
            reply_to_session_id: string | null;
            /**
             * @description When it becomes active.
             * @default null
             * @example 2026-11-23T12:00:00Z
             */
            scheduled_for: string | null;
            /** @default null */
            session_id: string | null;
            /** @default null */
            subject: string | null;
            /**
             * @description How long it lives, as an ISO 8601 duration.
             * @default null
             * @example PT1H
             */
            time_to_live: string | null;
            /** @default null */
            to: string | null;
        };
        /**
         * @description The outcome of a settlement.
         * @enum {string}
         */
        Outcome: "complete" | "abandon" | "dead_letter" | "defer";
        /** @description What happened in an interval, and the messages at its end. */
        PointShown: {
            /** Format: int32 */
            active: number;
            /** @description Its end; of one that has not ended, the last look. */
            at: string;
            /**
             * Format: int32
             * @description Messages that were completed, or received and deleted.
             */
            completed: number;
            /**
             * Format: int32
             * @description Messages that were dead-lettered.
             */
            dead_lettered: number;
            /** Format: int32 */
            dead_letters: number;
            /** Format: int32 */
            deferred: number;
            /**
             * Format: int32
             * @description Messages that came in; for a namespace as in the rates.
             */
            incoming: number;
            /**
             * Format: int32
             * @description Messages that came in to topics.
             */
            published: number;
            /** Format: int32 */
            scheduled: number;
            /**
             * Format: double
             * @description How long the broker has watched in it: less than the length of an interval if it was started or stopped then.
             */
            seconds: number;
        };
        /** @description Why a request was not carried out. */
        Problem: {
            /**
             * @description What is wrong, where, and what would be right.
             * @example The messaging entity 'orders' could not be found.
             */
            detail: string;
            /**
             * @description The parameter of the query or the field of the body that is wrong, if that is known.
             * @example selection.filter
             */
            field?: string | null;
            /**
             * @description The kind of the reason, as in the metric `jitney_refusals_total`.
             * @example not_found
             */
            reason: string;
            /**
             * Format: int32
             * @description The HTTP status.
             * @example 404
             */
            status: number;
            /**
             * @description The status as a word.
             * @example Not Found
             */
            title: string;
        };
        /** @description What the process takes of the machine. */
        Process: {
            /** @description Memory that is counted where it is kept, as in the metric `jitney_memory_bytes`. */
            counted_bytes: {
                [key: string]: number;
            };
            /** Format: double */
            cpu_seconds: number;
            /** Format: int64 */
            descriptors: number;
            /** Format: int64 */
            descriptors_max: number;
            /** Format: int64 */
            resident_bytes: number;
            /** Format: int64 */
            threads: number;
        };
        /** @description Messages per second. */
        RatesShown: {
            /**
             * Format: double
             * @description Those that were completed, or received and deleted.
             */
            completed: number;
            /** Format: double */
            dead_lettered: number;
            /**
             * Format: double
             * @description Messages that came in; for a namespace those that arrived at queues and subscriptions to be received there: each copy of a
             *     topic's message counts, and one that was forwarded counts where it ends.
             */
            incoming: number;
            /**
             * Format: double
             * @description Messages that came in to topics.
             */
            published: number;
        };
        /** @description A receive over HTTP that waits for a message. */
        Receive: {
            /** @description When it came. */
            began_at: string;
            /** @description Whose credentials its client has: `operator`, `key NAME`, `identity SUBJECT`; `anyone` if none are verified. */
            client: string;
            /** @description The address of the queue or the subscription. */
            entity: string;
            /** @description The host by which its client calls the namespace. */
            host: string;
            /** Format: int64 */
            id: number;
            mode: components["schemas"]["ReceiveMode"];
            /** @description The address of its client; of IPv6 the network. */
            peer: string;
            /** @description Until when it waits. */
            waits_until: string;
        };
        /**
         * @description How a message is received.
         * @enum {string}
         */
        ReceiveMode: "peek_lock" | "receive_and_delete";
        /** @description Messages that are locked now. */
        Received: {
            /**
             * @description Written one by one. Behind a MiB of messages, and where the broker has no room for more, they are shown without
             *     their bodies and properties.
             */
            messages: components["schemas"]["LockedMessage"][];
        };
        /** @description Receives over HTTP that wait, in the order of their ids. */
        Receives: {
            /** @description What `after` is to be for the next page; without it there is none. */
            next_after?: string | null;
            receives: components["schemas"]["Receive"][];
        };
        /** @description A namespace whose quarantine was ended. */
        Released: {
            name: string;
            /** @description Why it was in quarantine. */
            was: string;
        };
        /**
         * @description A right.
         * @enum {string}
         */
        RightName: "send" | "listen" | "manage";
        /**
         * @description The purpose of a link.
         * @enum {string}
         */
        Role: "sender" | "receiver" | "waiting_receiver" | "coordinator" | "requests" | "responses";
        /** @description The key to be replaced. */
        RotateRequest: {
            key: components["schemas"]["Which"];
        };
        /** @description A rule. */
        Rule: {
            /** @description Statements that change the subscription's copy. */
            action?: string | null;
            created_at: string;
            filter: components["schemas"]["RuleFilter"];
            name: string;
        };
        /** @description Which messages a rule takes. */
        RuleFilter: {
            /** @enum {string} */
            kind: "true";
        } | {
            /** @enum {string} */
            kind: "false";
        } | {
            /** @example color = 'red' AND sys.Label LIKE 'order%' */
            expression: string;
            /** @enum {string} */
            kind: "sql";
        } | (components["schemas"]["Correlation"] & {
            /** @enum {string} */
            kind: "correlation";
        });
        /** @description A rule to be made. */
        RuleRequest: {
            action?: string | null;
            filter: components["schemas"]["RuleFilter"];
        };
        /** @description Whether one rule takes the message, and why. */
        RuleTest: components["schemas"]["TestedCondition"] & {
            name: string;
        };
        /** @description The message to test, and which subscriptions. */
        RuleTestRequest: {
            kept?: components["schemas"]["KeptMessage"] | null;
            message?: components["schemas"]["NewMessage"] | null;
            /** @description So many subscriptions of a topic are left out: `next_skip` of the answer before. */
            skip?: number;
        };
        /** @description Which subscriptions take the message. */
        RuleTests: {
            /** @description What `skip` is to be for further subscriptions; without it there are none. */
            next_skip?: number | null;
            /** @description Written one by one, before the rest. */
            subscriptions: components["schemas"]["SubscriptionTest"][];
            /** @description The values of the properties that the conditions read; null for those that are absent. Of a text there are 256 characters. */
            values?: {
                [key: string]: unknown;
            };
        };
        /** @description Rules of a subscription. */
        Rules: {
            /**
             * @description What `skip` is to be for the next page; without it there is none. A page has 1 MiB of rules at most, or one that is
             *     longer.
             */
            next_skip?: number | null;
            /** @description Written one by one, before the rest. */
            rules: components["schemas"]["Rule"][];
        };
        /**
         * @description The state of a job.
         * @enum {string}
         */
        RunState: "running" | "completed" | "cancelled" | "failed";
        /** @description Scheduled messages in spans of time. */
        ScheduledCounts: {
            /** @description The end; likewise. */
            before?: string | null;
            /** @description The beginning; absent if none was given, and nothing is scheduled. */
            from?: string | null;
            /** @description More messages than one request counts are scheduled for this time: those behind are not counted. */
            incomplete?: boolean;
            /** @description Messages that become active in each span; none without a beginning. */
            spans: components["schemas"]["ScheduledSpan"][];
            /** @description All scheduled messages of the entity. */
            total: number;
        };
        /** @description One span of time. */
        ScheduledSpan: {
            from: string;
            messages: number;
        };
        /** @description Messages that a selection means. */
        SelectionCount: {
            /**
             * Format: int64
             * @description Those of them that a receiver has locked: a job would leave them as they are.
             */
            locked: number;
            /** Format: int64 */
            messages: number;
            /**
             * Format: int64
             * @description What `from` is to be to continue; without it, all were looked at. One answer looks at a bounded number of messages.
             */
            next?: number | null;
            /**
             * Format: int64
             * @description Bytes of all of them as their senders encoded them.
             */
            size_bytes: number;
            /**
             * Format: int64
             * @description Messages that are not counted because evaluating `json_path` in their bodies takes too many steps: a job would leave
             *     them as they are.
             */
            undecided?: number;
        };
        /** @description Messages to be sent, all or none. Each is encoded as soon as it is read: its form in memory is many times as large. */
        SendRequest: {
            messages: components["schemas"]["NewMessage"][];
        };
        /** @description Messages that were sent. */
        Sent: {
            /** @description Their sequence numbers; 0 for one that was dropped as a duplicate. */
            sequence_numbers: number[];
        };
        /** @description The server. */
        Server: {
            data?: components["schemas"]["Data"] | null;
            /** @description Any key is accepted (the development profile). */
            open: boolean;
            process: components["schemas"]["Process"];
            shards: components["schemas"]["ShardShown"][];
            started_at: string;
            version: string;
        };
        /** @description A message session. */
        Session: {
            id: string;
            lock?: components["schemas"]["Lock"] | null;
            /** @description Its messages, in whatever state; 1,000 means 1,000 or more. */
            messages: number;
            /** @description Its state in base64; in the answer about one session only. */
            state_base64?: string | null;
            /** @description Bytes of its state; without it, it has none. */
            state_bytes?: number | null;
        };
        /** @description A new state of a message session. */
        SessionStateRequest: {
            /** @description The state in base64; null clears it. */
            state_base64?: string | null;
        };
        /** @description Message sessions, in the order of their ids. */
        Sessions: {
            /** @description What `after` is to be for the next page; without it there is none. */
            next_after?: string | null;
            sessions: components["schemas"]["Session"][];
        };
        /** @description Locked messages to be settled. */
        SettleRequest: {
            settlements: components["schemas"]["SettlementRequest"][];
        };
        /** @description How one message is settled. */
        SettlementRequest: {
            /** @description More about that. */
            description?: string | null;
            /** @example 8b1f6f0e-5a55-4f0c-9a3e-0c1c5a7e2f11 */
            lock_token: string;
            outcome: components["schemas"]["Outcome"];
            /** @description Application-properties that are set; not of a message that is completed. */
            properties?: {
                [key: string]: unknown;
            };
            /** @description Why it is dead-lettered. */
            reason?: string | null;
        };
        /** @description The result of a settlement. */
        SettlementResult: {
            /** @description Why it is not. */
            code?: string | null;
            detail?: string | null;
            lock_token: string;
            settled: boolean;
        };
        /** @description The results of settlements, in the order of the request. */
        Settlements: {
            results: components["schemas"]["SettlementResult"][];
        };
        /** @description Up to where a backup has the log of a shard. */
        ShardBackup: {
            /**
             * Format: int64
             * @description The newest group of records.
             */
            group: number;
            /** Format: int32 */
            shard: number;
        };
        /** @description A shard. */
        ShardShown: {
            /** @description Messages are accepted: neither its disk nor the memory is full. */
            accepts_messages: boolean;
            connections: number;
            /**
             * Format: int64
             * @description The newest group of records.
             */
            groups: number;
            /** @description Its owner and its disk make progress. */
            healthy: boolean;
            /**
             * Format: int64
             * @description Bytes of the log that messages still use.
             */
            live_bytes: number;
            /** Format: int64 */
            log_bytes: number;
            namespaces: string[];
            /** Format: int32 */
            number: number;
            segments: number;
            /** @description Why they are not, and what helps. */
            shortage?: string | null;
        };
        /**
         * @description The state of a message.
         * @enum {string}
         */
        State: "active" | "deferred" | "scheduled";
        /**
         * @description Why a receiver is stuck.
         * @enum {string}
         */
        StuckFor: "holding" | "silent";
        /** @description Whether one subscription takes the message. */
        SubscriptionTest: {
            /** @description It has more rules than one answer has: 1,000, or a MiB. */
            incomplete?: boolean;
            /** @description Its path. */
            path: string;
            rules: components["schemas"]["RuleTest"][];
            /** @description At least one of its rules takes the message. */
            takes: boolean;
        };
        /** @description What was counted. */
        SumShown: {
            /**
             * Format: int64
             * @description Within the last day.
             */
            day: number;
            /**
             * Format: int64
             * @description Within the last hour.
             */
            hour: number;
        };
        /** @description A condition with its parts. */
        TestedCondition: {
            /** @description Why it cannot be evaluated. */
            error?: string | null;
            /** @description The conditions that `AND`, `OR` or `NOT` makes it of. */
            parts?: components["schemas"]["TestedCondition"][];
            /** @description The properties that a condition without parts reads; `values` of the answer has their values. */
            properties?: string[];
            result: components["schemas"]["ConditionResult"];
            /** @description The condition as SQL. */
            text: string;
        };
        /** @description How the messages of an entity have changed over the last hour and day. */
        TrendShown: {
            /** @description Messages that receivers may get. */
            active: components["schemas"]["ChangeShown"];
            /** @description How many messages were dead-lettered, whether they are still there or not. */
            dead_lettered: components["schemas"]["SumShown"];
            dead_letters: components["schemas"]["ChangeShown"];
            /** @description When the broker began to watch the entity within the last day; absent if it does not yet. */
            since?: string | null;
        };
        /** @description The changes of a namespace's entities. */
        TrendsShown: {
            /** @description Those of all entities that have a history, and had messages or dead letters within the last day, in the order of their paths. */
            trends: components["schemas"]["EntityTrend"][];
            whole?: components["schemas"]["TrendShown"] | null;
        };
        /**
         * @description Whether a person is needed.
         * @enum {string}
         */
        Urgency: "alarm" | "notice";
        /**
         * @description One of the two keys of a rule.
         * @enum {string}
         */
        Which: "primary" | "secondary";
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    get_access: {
        parameters: {
            query?: {
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Access"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_attention: {
        parameters: {
            query?: {
                /** @description The path of an entity: the answer is about that entity. Without it, the answer is about the namespace. */
                entity?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Attention"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_audit: {
        parameters: {
            query?: {
                /** @description Entries with smaller numbers only: `next_before` of the page before. */
                before?: number;
                /** @description As many at most, 100 if it is not given. */
                limit?: number;
                /** @description Whose: a part of `actor`, whatever its case. */
                actor?: string;
                /**
                 * @description The operation.
                 * @example update
                 */
                operation?: string;
                /** @description The path of the entity. */
                entity?: string;
                /**
                 * @description At this time or later.
                 * @example 2026-11-23T12:00:00Z
                 */
                since?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditLog"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    follow_changes: {
        parameters: {
            query?: {
                /** @description The stream ends after so many seconds, and the client continues with `Last-Event-ID`; 600 if it is not given. */
                seconds?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: {
                /** @description The id of the last event that the client has seen */
                "Last-Event-ID"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The data of `entity`; that of `job` and `connection` is as in their lists, and that of `attention` is `AttentionNow`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["EntityNow"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_configuration: {
        parameters: {
            query?: {
                /** @description With the authorization rules of queues and topics, and so with their keys. */
                keys?: boolean;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConfigJson"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_configuration: {
        parameters: {
            query?: {
                /** @description Its name in the file; without it, the one with the name of this namespace is meant, or the only one if it has no name. */
                from?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConfigJson"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Applied"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_connections: {
        parameters: {
            query?: {
                /** @description Where the list begins: `next` of the page before. */
                from?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Connections"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    close_connection: {
        parameters: {
            query?: {
                /** @description What becomes of the locks of its receivers. Those of message sessions always end with their link, uncounted. */
                locks?: "end" | "stay";
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description Its id */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    close_link: {
        parameters: {
            query?: {
                /** @description What becomes of the locks of its receivers. Those of message sessions always end with their link, uncounted. */
                locks?: "end" | "stay";
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The id of the connection */
                id: number;
                /** @description The id of the link on that connection */
                link: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_entities: {
        parameters: {
            query: {
                /** @description The kind. */
                kind: components["schemas"]["Kind"];
                /** @description The topic of subscriptions. */
                topic?: string;
                /** @description So many are left out at the beginning. */
                skip?: number;
                /** @description As many at most, 100 if it is not given. */
                limit?: number;
                /** @description Each entity has its trend, too. */
                trend?: boolean;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entities"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_entity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its path, with slashes percent-encoded */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    /** @description Its version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_entity: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is changed, or * for any; without it, the entity is made */
                "If-Match"?: string | null;
            };
            path: {
                /** @description Its path, with slashes percent-encoded */
                entity: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntityRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_entity: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is deleted; without it, any */
                "If-Match"?: string | null;
            };
            path: {
                /** @description Its path, with slashes percent-encoded */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_authorization_rules: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a topic */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuthorizationRules"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_authorization_rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a topic */
                entity: string;
                /** @description The name of the rule */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AuthorizationRuleRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuthorizationRuleShown"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_authorization_rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a topic */
                entity: string;
                /** @description The name of the rule */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    rotate_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a topic */
                entity: string;
                /** @description The name of the rule */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RotateRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuthorizationRuleShown"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    group_dead_letters: {
        parameters: {
            query?: {
                /** @description The first sequence number to look at: `next` of the answer before. */
                from?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The path of a queue or a subscription */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetterGroups"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_entity_history: {
        parameters: {
            query?: {
                /** @description How far back it goes: the last hour if it is not given. */
                range?: components["schemas"]["HistoryRange"];
                /**
                 * @description Intervals that ended after this time; all if it is not given.
                 * @example 2026-11-23T12:00:00Z
                 */
                after?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description Its path */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryShown"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    lock_messages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a subscription without message sessions, or of one of their sub-queues */
                entity: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LockRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Received"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_messages: {
        parameters: {
            query?: {
                /** @description The first sequence number to look at: `next` of the page before. */
                from?: number;
                /** @description As many at most, 100 if it is not given. */
                limit?: number;
                /**
                 * @description How much is shown of bodies: none of them, up to 4 KiB of each, or all. A page has 1 MiB of messages at most, as they
                 *     are shown, or one message that is longer.
                 */
                body?: components["schemas"]["BodyShown"];
                /** @description Show the messages as AMQP encodes them, in base64, too. */
                encoded?: boolean;
                /** @description States; none means all. */
                state?: components["schemas"]["State"][];
                /** @description The message session. */
                session_id?: string;
                /** @description Enqueued at this time or later. */
                enqueued_from?: string;
                /** @description Enqueued before this time. */
                enqueued_before?: string;
                /** @description Scheduled for this time or later. */
                scheduled_from?: string;
                /** @description Scheduled for a time before this. */
                scheduled_before?: string;
                /** @description The message id. */
                message_id?: string;
                /** @description The correlation id. */
                correlation_id?: string;
                /** @description The reason of a dead letter. */
                reason?: string;
                /** @description Those that have no reason of a dead letter. */
                without_reason?: boolean;
                /** @description The error description of a dead letter. */
                description?: string;
                /** @description Those that have no error description of a dead letter. */
                without_description?: boolean;
                /** @description A SQL filter over properties, as rules have. */
                filter?: string;
                /** @description A text that the body contains. */
                text?: string;
                /** @description A `JSONPath` that finds something in the body. */
                json_path?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The path of a queue, a topic, a subscription, or one of their sub-queues: `orders/$DeadLetterQueue`, with slashes percent-encoded */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Messages"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue, a subscription, or one of their sub-queues */
                entity: string;
                /** @description Its sequence number */
                number: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessageShown"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    test_rules: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a topic or a subscription */
                entity: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RuleTestRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RuleTests"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_rules: {
        parameters: {
            query?: {
                /** @description So many are left out at the beginning. */
                skip?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The subscription's path, with slashes percent-encoded */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rules"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The subscription's path */
                entity: string;
                /** @description Its name */
                rule: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    /** @description Its version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rule"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_rule: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is replaced, or * for any; without it, the rule is made */
                "If-Match"?: string | null;
            };
            path: {
                /** @description The subscription's path */
                entity: string;
                /** @description Its name */
                rule: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RuleRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rule"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rule"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_rule: {
        parameters: {
            query?: never;
            header?: {
                /** @description The version that is deleted; without it, any */
                "If-Match"?: string | null;
            };
            path: {
                /** @description The subscription's path */
                entity: string;
                /** @description Its name */
                rule: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    count_scheduled: {
        parameters: {
            query?: {
                /**
                 * @description The beginning; that of the first scheduled message if it is not given.
                 * @example 2026-11-23T12:00:00Z
                 */
                from?: string;
                /** @description The end; behind the last scheduled message if it is not given. */
                before?: string;
                /** @description Equal spans of the time, 60 if it is not given. */
                spans?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The path of a queue or a topic */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduledCounts"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    send_messages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a topic */
                entity: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendRequest"];
                "application/octet-stream": number[];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sent"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_sessions: {
        parameters: {
            query?: {
                /** @description Those behind this id. */
                after?: string;
                /** @description As many at most, 100 if it is not given. */
                limit?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The path of a queue or a subscription */
                entity: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sessions"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a subscription */
                entity: string;
                /** @description Its id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    set_session_state: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue or a subscription */
                entity: string;
                /** @description Its id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionStateRequest"];
            };
        };
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    settle_messages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path of a queue, a subscription, or one of their sub-queues */
                entity: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SettleRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settlements"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_fleet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FleetShown"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    release_namespace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of the namespace */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Released"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_history: {
        parameters: {
            query?: {
                /** @description How far back it goes: the last hour if it is not given. */
                range?: components["schemas"]["HistoryRange"];
                /**
                 * @description Intervals that ended after this time; all if it is not given.
                 * @example 2026-11-23T12:00:00Z
                 */
                after?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryShown"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_jobs: {
        parameters: {
            query?: {
                /** @description Jobs with smaller ids only: `next_before` of the page before. */
                before?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Jobs"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    start_job: {
        parameters: {
            query?: {
                /** @description The answer comes when the job has ended, or after so many seconds. */
                wait?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobRequest"];
            };
        };
        responses: {
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    count_selection: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CountRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SelectionCount"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_job: {
        parameters: {
            query?: {
                /** @description The answer comes when the job has ended, or after so many seconds. */
                wait?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description Its id */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    search_messages: {
        parameters: {
            query?: {
                /** @description The address of the queue to begin at: `next_queue` of the answer before. */
                from_queue?: string;
                /** @description The first sequence number to look at in that queue: `next_number` of the answer before. */
                from_number?: number;
                /** @description As many at most, 100 if it is not given. */
                limit?: number;
                /** @description A sequence number. Queues number their messages by themselves, so several messages may have it. */
                sequence_number?: number;
                /** @description The message id. */
                message_id?: string;
                /** @description The correlation id. */
                correlation_id?: string;
                /** @description The message session. */
                session_id?: string;
                /** @description States; none means all. */
                state?: components["schemas"]["State"][];
                /** @description A SQL filter over properties, as rules have. */
                filter?: string;
                /** @description A text that the body contains. */
                text?: string;
                /** @description A `JSONPath` that finds something in the body. */
                json_path?: string;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Found"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_namespaces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NamespaceList"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_namespace: {
        parameters: {
            query?: {
                /** @description The name of the namespace in the body whose entities are made; it may be left out if the body has only one. */
                from?: string;
                /** @description Without effect. */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description Its name: letters, digits and hyphens */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ConfigJson"] | null;
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_namespace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_receives: {
        parameters: {
            query?: {
                /** @description Those behind this id. */
                after?: string;
                /** @description As many at most, 100 if it is not given. */
                limit?: number;
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Receives"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    end_receive: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_server: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Server"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_backup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BackupRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackupMade"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_trends: {
        parameters: {
            query?: {
                /** @description The namespace, instead of that of the host. */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrendsShown"];
                };
            };
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
