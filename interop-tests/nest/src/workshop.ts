// A workshop, as somebody writes it with Nest and the AMQP 1.0 module that knows nothing of Service Bus: jobs are checked against a class,
// done, refused or put off, and told on.

import "reflect-metadata";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Listen, MessageControl, QueueModule, QueueService } from "@team-supercharge/nest-amqp";
import { Expose } from "class-transformer";
import { IsInt, IsString, Min } from "class-validator";

const port = process.env.JITNEY_AMQP_PORT ?? "";

class Job {
  @Expose()
  @IsString()
  id!: string;

  @Expose()
  @IsInt()
  @Min(1)
  hours!: number;
}

const JOBS = "s365";
const DONE = "s365b";
const NEWS = "s366";
const TOO_LONG = 9;

@Injectable()
class Workshop {
  constructor(private readonly queues: QueueService) {}

  @Listen(JOBS, { type: Job, parallelMessageProcessing: 3 })
  async work(job: Job, control: MessageControl): Promise<void> {
    if (job.id === "clumsy") throw new Error("it slipped");
    if (job.id === "later") {
      control.release();
    } else if (job.hours >= TOO_LONG) {
      control.reject("it takes too long");
    } else {
      await this.queues.send(DONE, { id: job.id, done: true }, { subject: "done" });
      await this.queues.send(NEWS, { id: job.id, hours: job.hours }, { application_properties: { hours: job.hours } });
      control.accept();
    }
  }

  @Listen(`${NEWS}/Subscriptions/quick`, { type: Job, skipValidation: true })
  async hear(news: Job): Promise<void> {
    // Accepted by the module, when the handler returns.
    await this.queues.send(DONE, { id: news.id, heard: true });
  }
}

@Module({
  imports: [
    QueueModule.forRoot(`amqp://RootManageSharedAccessKey:SAS_KEY_VALUE@localhost:${port}`, {
      isGlobal: true, throwExceptionOnConnectionError: true,
    }),
  ],
  providers: [Workshop],
})
class WorkshopModule {}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(WorkshopModule, { logger: ["error", "warn"] });
  const stop = async (): Promise<void> => {
    await app.get(QueueService).shutdown();
    await app.close();
  };
  process.once("SIGTERM", () => void stop());
  process.stdout.write("open\n");
}

void main();
