export { getInstanceByDom, init } from "echarts";
