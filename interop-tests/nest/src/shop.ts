// A shop, as somebody writes it with Nest and its transporter for Azure Service Bus: orders come by HTTP or by queue, go on as events on a
// topic, prices are asked for and answered, and parcels are tried again or given up.

import "reflect-metadata";
import { Body, Controller, HttpCode, Inject, Module, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Ctx, Payload } from "@nestjs/microservices";
import type { ServiceBusReceivedMessage, ServiceBusReceiver } from "@azure/service-bus";
import {
  AzureServiceBusClientProxy, AzureServiceBusContext, AzureServiceBusModule, AzureServiceBusServer, Queue, Topic,
} from "nestjs-azure-service-bus-transporter";
import { firstValueFrom } from "rxjs";

const connectionString = process.env.JITNEY_CONNECTION_STRING ?? "";
// Without this the SDK looks for a broker that has gone every 30 seconds.
const options = { retryOptions: { retryDelayInMs: 500, timeoutInMs: 10_000 } };

interface Order {
  id: string;
  amount: number;
}

/** A message as handlers get it. */
type Message<Body> = Omit<ServiceBusReceivedMessage, "body"> & { body: Body };

const ORDERS = "s361";
const REPORTS = "s361b";
const EVENTS = "s362";
const PRICES = "s363";
const PARCELS = "s364";
const GIVES_IN_AT = 2;

@Controller()
class Shop {
  constructor(@Inject("BUS") private readonly bus: AzureServiceBusClientProxy) {}

  @Post("orders")
  @HttpCode(202)
  async order(@Body() order: Order): Promise<void> {
    await this.emit(ORDERS, { messageId: order.id, body: order });
  }

  @Post("prices")
  @HttpCode(200)
  async ask(@Body() question: { item: string }): Promise<unknown> {
    return firstValueFrom(this.bus.send({ name: PRICES, options: {} }, { body: question }));
  }

  @Queue({ queueName: ORDERS, receiveMode: "peekLock", options: { maxConcurrentCalls: 4 } })
  async ordered(@Payload() { body: order }: Message<Order>): Promise<void> {
    const applicationProperties = { amount: order.amount };
    await this.emit(EVENTS, { body: order, subject: "ordered", applicationProperties });
  }

  @Topic({ topic: EVENTS, subscription: "all", receiveMode: "peekLock" })
  async bill({ body, subject }: Message<Order>): Promise<void> {
    await this.report({ by: "all", id: body.id, subject });
  }

  @Topic({ topic: EVENTS, subscription: "large", receiveMode: "receiveAndDelete" })
  async weigh({ body, subject }: Message<Order>): Promise<void> {
    await this.report({ by: "large", id: body.id, subject });
  }

  @Queue({ queueName: PRICES, receiveMode: "peekLock" })
  price({ body }: Message<{ item: string }>): { item: string; price: number } {
    return { item: body.item, price: body.item.length };
  }

  @Queue({ queueName: PARCELS, receiveMode: "peekLock", options: { autoCompleteMessages: false } })
  async deliver(@Payload() message: Message<{ kind: string }>, @Ctx() context: AzureServiceBusContext): Promise<void> {
    const receiver: ServiceBusReceiver = context.getArgByIndex(0);
    const { kind } = message.body;
    if (kind === "broken") {
      await receiver.deadLetterMessage(message, { deadLetterReason: "Broken", deadLetterErrorDescription: "in pieces" });
    } else if (kind === "late") {
      await receiver.deferMessage(message);
    } else if (kind === "nobody-home" || (message.deliveryCount ?? 0) < GIVES_IN_AT) {
      await receiver.abandonMessage(message, { tried: (message.deliveryCount ?? 0) + 1 });
    } else {
      await receiver.completeMessage(message);
      await this.report({ by: "parcels", kind, tried: message.applicationProperties?.tried });
    }
  }

  private async report(body: object): Promise<void> {
    await this.emit(REPORTS, { body });
  }

  private async emit(name: string, message: object): Promise<void> {
    await firstValueFrom(this.bus.emit({ name, options: {} }, message), { defaultValue: undefined });
  }
}

@Module({
  imports: [AzureServiceBusModule.forRoot([{ name: "BUS", connectionString, options }])],
  controllers: [Shop],
})
class ShopModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create(ShopModule, { logger: ["error", "warn"] });
  app.connectMicroservice({ strategy: new AzureServiceBusServer({ connectionString, options }) });
  app.enableShutdownHooks();
  await app.startAllMicroservices();
  await app.listen(0, "127.0.0.1");
  process.stdout.write(`open at ${await app.getUrl()}\n`);
}

void main();
